"""The leaderboard: a store of signed reports, their ranking, and a static site of them.

Start with keys.py, which says what counts, and ranking.py, which says in what order.
"""

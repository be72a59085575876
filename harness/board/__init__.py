"""The leaderboard: a store of reports, their ranking, and the views of it."""

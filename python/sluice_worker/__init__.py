"""The worker: the process inside a sandbox that runs cells. Nothing here is for user code to import."""

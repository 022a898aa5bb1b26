"""Connections of agents: who may speak, what a frame may hold, and the way back to a node."""

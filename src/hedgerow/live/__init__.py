# SPDX-License-Identifier: Apache-2.0
"""Live output for in-the-loop work: sweeps as ROS 2 messages over a Foxglove WebSocket.

`stream.stream_drive` sends a drive at the pace of the sensor, `server.SweepServer` answers poses with sweeps, and
`client.Client` is the other end. Foxglove and everything else that speaks its WebSocket protocol can listen and ask.
"""

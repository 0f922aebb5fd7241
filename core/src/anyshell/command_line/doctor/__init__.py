"""`anyshell doctor`: its questions about this host, each with the answer that was tried and the fix for a gap."""

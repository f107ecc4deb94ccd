"""The oracle: landscape -> neighbour graph -> Global Land Manager -> labels with a certificate."""

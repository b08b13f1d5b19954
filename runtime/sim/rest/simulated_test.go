package rest_test

import "testing"

// TestParitySimulated gives the cases of testdata/parity to the simulated server:
// its answers are those that the real one was recorded with.
func TestParitySimulated(t *testing.T) {
	if *update {
		t.Skip("recording what the real server answers")
	}
	runParity(t, simulatedWorld(), false)
}

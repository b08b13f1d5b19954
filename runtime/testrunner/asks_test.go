package testrunner

import "testing"

// Charts that ask what the API server serves are rendered again when the answer changes, in whatever order that
// happens, and no others are.
func TestChartsThatAsk(t *testing.T) { testTree(t, "testdata/asks", 10) }

package testrunner

import "testing"

// Charts that ask what the API server serves are rendered again when the answer changes, in whatever order that
// happens, and no others are.
func TestChartsThatAsk(t *testing.T) { testTree(t, "testdata/asks", 10) }

// A chart that looks things up is rendered again when the answers change. One that makes random values, too, has a new
// revision when that is found, or its values change, and not when Starling starts anew.
func TestChartsThatLookUp(t *testing.T) { testTree(t, "testdata/lookups", 0) }

// As with Helm, a chart that looks at its values as a whole sees no global where there is none.
func TestChartValuesWithoutGlobals(t *testing.T) { testTree(t, "testdata/globals", 5) }

// The config is seen by enabled(), readiness() and before_helm hooks, also if a hook's value hides it. A field that its
// schema requires is waited for.
func TestWhatTheUserSets(t *testing.T) {
	testTree(t, "testdata/userconfig", 0)
	testTree(t, "testdata/userglobal", 0)
	testTree(t, "testdata/userready", 0)
}

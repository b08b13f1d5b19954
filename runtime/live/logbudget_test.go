package live

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"

	"github.com/starling-operator/starling/builtins"
)

// A module that logs without end is cut to what it may log, one line a minute says so, and
// the others log on.
func TestLogsOfModulesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := NewMetrics(prometheus.NewRegistry(), "v1")
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		log := zerolog.New(&out)
		loud := hookLog{log: log.With().Str("module", "loud").Logger(), budget: m.logs.of("loud", log)}
		lines := 0
		for range 130 { // seconds
			for range 1000 {
				loud.Log(builtins.LevelInfo, strings.Repeat("x", 10_000), nil)
				lines++
			}
			hookLog{log: log.With().Str("module", "quiet").Logger(), budget: m.logs.of("quiet", log)}.Log(builtins.LevelInfo, "here", nil)
			time.Sleep(time.Second)
		}
		if most := logBurst + 130*logRate + 50_000; out.Len() > most {
			t.Errorf("%d bytes are logged, want at most %d", out.Len(), most)
		}
		text := out.String()
		if n := strings.Count(text, "here"); n != 130 {
			t.Errorf("%d of 130 lines of the module beside it", n)
		}
		if n := strings.Count(text, `"module":"loud","message":"the hooks of this module log more than 64 KiB a second`); n != 3 {
			t.Errorf("%d lines say it, want one a minute", n)
		}
		written := strings.Count(text, "xxxx\"")
		if dropped := testutil.ToFloat64(m.logs.dropped.WithLabelValues("loud")); dropped != float64(lines-written) {
			t.Errorf("%v of %d lines are counted as left out, and %d are there", dropped, lines, written)
		}
		m.gone("loud", "")
		if len(m.logs.all) != 1 || testutil.CollectAndCount(m.logs.dropped) != 0 {
			t.Error("a module that is gone is remembered")
		}
	})
}

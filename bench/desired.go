package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"time"
)

// desiredAim is for the function of examples/application, from the call to the list of actions.
const desiredAim = 50 * time.Microsecond

var desiredRuns = regexp.MustCompile(`BenchmarkDesired/function\S*\s+\d+\s+(\d+)(?:\.\d+)? ns/op`)

// addDesired has the benchmark of the controller of examples/application run, which needs no cluster.
func (b *bench) addDesired(ctx context.Context) error {
	long := "1s"
	if b.quick {
		long = "20x"
	}
	out, err := exec.CommandContext(ctx, "go", "test", "github.com/starling-operator/starling/runtime/hook",
		"-run=^$", "-bench=^BenchmarkDesired$/^function$", "-count=5", "-benchtime="+long).CombinedOutput()
	if err != nil {
		return fmt.Errorf("go test -bench: %w: %s", err, out)
	}
	took, err := desiredTimes(out)
	if err != nil {
		return err
	}
	p50 := percentile(took, 0.5)
	b.table.add(row{what: "desired of examples/application, p50 of 5", starling: micros(p50), aim: verdict("≤ 50 µs", p50 <= desiredAim)})
	return nil
}

// desiredTimes reads what go test prints.
func desiredTimes(out []byte) (took []time.Duration, err error) {
	for _, found := range desiredRuns.FindAllSubmatch(out, -1) {
		one, err := time.ParseDuration(string(found[1]) + "ns")
		if err != nil {
			return nil, err
		}
		took = append(took, one)
	}
	if took == nil {
		return nil, errors.New("go test has run no BenchmarkDesired")
	}
	return took, nil
}

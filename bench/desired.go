package main

import (
	"errors"
	"os/exec"
	"regexp"
	"time"
)

// desiredAim is for the function of examples/application, from the call to the list of actions.
const desiredAim = 50 * time.Microsecond

var desiredRuns = regexp.MustCompile(`BenchmarkDesired/function\S*\s+\d+\s+(\d+)(?:\.\d+)? ns/op`)

// addDesired has the benchmark of the controller of examples/application run, which needs no cluster.
func (b *bench) addDesired() {
	long := "1s"
	if b.quick {
		long = "20x"
	}
	out, err := exec.CommandContext(b.ctx, "go", "test", "github.com/starling-operator/starling/runtime/hook",
		"-run=^$", "-bench=^BenchmarkDesired$/^function$", "-count=5", "-benchtime="+long).CombinedOutput()
	if err != nil {
		b.Fatalf("go test -bench: %v: %s", err, out)
	}
	took, err := desiredTimes(out)
	b.check(err)
	p50 := middle(took)
	b.add("desired of examples/application, p50 of 5", micros(p50), verdict("≤ 50 µs", p50 <= desiredAim))
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

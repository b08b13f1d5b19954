package watch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/starling-operator/starling/runtime/cluster"
	"go.starlark.net/starlark"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// feed is a client with one watch, fed by the benchmark.
type feed struct {
	listClient
	frames *io.PipeWriter
	open   chan struct{}
}

func (c *feed) Watch(ctx context.Context, _ cluster.Mapping, _ string, o metav1.ListOptions) (io.ReadCloser, error) {
	if o.SendInitialEvents != nil {
		return nil, errors.New("lists are not streamed")
	}
	read, write := io.Pipe()
	c.frames = write
	context.AfterFunc(ctx, func() { write.Close() })
	close(c.open)
	return read, nil
}

type counter chan struct{}

func (counter) Synced(string, bool) {}
func (c counter) Changed(_ string, events []Event) {
	for range events {
		c <- struct{}{}
	}
}

// BenchmarkEvents is the way of an event through a stream and a filter that is a program, to
// the sink: one after the other, and many objects at once.
func BenchmarkEvents(b *testing.B) {
	for _, at := range []int{1, 100} {
		b.Run(fmt.Sprintf("at=%d", at), func(b *testing.B) {
			c := &feed{open: make(chan struct{})}
			seen := make(counter, at)
			m := New(Options{Client: c, Sink: seen, Idle: time.Hour})
			defer m.Shutdown()
			spec := configMaps("w")
			spec.Apart = true
			spec.Filter = func(obj map[string]any) (starlark.Value, bool, error) {
				began := time.Now()
				for time.Since(began) < 5*time.Microsecond { // about as long as a small Starlark filter
				}
				return dataFilter(obj)
			}
			m.Start(spec)
			<-c.open
			n := 100
			frames := func() {
				for i := range at {
					n++
					obj := configMap("a", fmt.Sprint("x", i), fmt.Sprint(n))
					obj["metadata"].(map[string]any)["resourceVersion"] = fmt.Sprint(n)
					data, _ := json.Marshal(map[string]any{"type": "MODIFIED", "object": obj})
					if _, err := c.frames.Write(data); err != nil {
						b.Fatal(err)
					}
				}
			}
			for b.Loop() {
				frames()
				for range at {
					<-seen
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*at), "ns/event")
		})
	}
}

func (counter) Failed(string, error, bool) {}

// BenchmarkAbout finds the three children of one parent, among those of many or few other parents, after
// one of the three has changed: the number of the others must not matter.
func BenchmarkAbout(b *testing.B) {
	for _, parents := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("parents=%d", parents), func(b *testing.B) {
			v := newView(Spec{Filter: dataFilter, Wakes: dataWakes})
			var entries []entry
			for i := range parents {
				for _, part := range []string{"deployment", "ingress", "service"} {
					key := objectKey{"a", fmt.Sprintf("%06d-%s", i, part)}
					entries = append(entries, entry{key, 1, v.run(forWhom(key.name, "1", fmt.Sprint(i)))})
				}
			}
			v.replace(entries, 1, time.Time{}, false)
			version := uint64(1)
			v.about("0")
			for b.Loop() {
				version++
				i := int(version) % parents
				key := objectKey{"a", fmt.Sprintf("%06d-service", i)}
				v.put(key, version, v.run(forWhom(key.name, fmt.Sprint(version), fmt.Sprint(i))), time.Time{}, false)
				if got := v.about(fmt.Sprint(i)); len(got) != 3 {
					b.Fatalf("%d children", len(got))
				}
			}
		})
	}
}

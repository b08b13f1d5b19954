package chart

import (
	"encoding/gob"
	"errors"
	"io"
	"log"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/modules/helm"
	"github.com/starling-operator/starling/runtime/effect"
)

// ServeCharts evaluates charts for a [Renderer] in another process, which it reaches by in and out, until that ends.
// It puts limits on this whole process and ends it when a chart passes them.
func ServeCharts(in io.Reader, out io.Writer) error {
	return serve(in, out, limitProcess(maxRenderTime))
}

func serve(in io.Reader, out io.Writer, limits *processLimits) error {
	log.SetOutput(io.Discard) // Helm's warnings, which may show values
	s := &server{out: gob.NewEncoder(out), answers: make(chan answer)}
	jobs := make(chan job)
	ended := make(chan error, 1)
	go func() { // so that the end of the other process ends a chart that does not end
		dec := gob.NewDecoder(in)
		for {
			var m toChild
			if err := dec.Decode(&m); err != nil {
				if errors.Is(err, io.EOF) {
					err = nil
				}
				ended <- err
				return
			}
			if m.Memory > 0 {
				limits.most(m.Memory)
			}
			if m.Large {
				limits.allow(moreArenas)
			}
			if m.Job != nil {
				jobs <- *m.Job
			} else if m.Answer != nil {
				s.answers <- *m.Answer
			}
		}
	}()
	work := func(j job) error {
		limits.begin()
		defer limits.end()
		var lookups helm.Lookup
		if j.Kind == jobRender { // no other job looks anything up
			lookups = s.ask
		}
		out := j.do(lookups)
		return s.out.Encode(toParent{Outcome: &out})
	}
	failed := make(chan error, 1)
	go func() {
		for j := range jobs {
			if err := work(j); err != nil {
				failed <- err
				return
			}
		}
	}()
	select {
	case err := <-ended:
		return err
	case err := <-failed:
		return err
	}
}

// toChild and toParent are the messages between the two processes.
type toChild struct {
	// Memory is how much a chart may take. It comes first.
	Memory uint64
	// Large allows the process the memory of a large job. It comes before the job, which
	// may be too large to be read without.
	Large  bool
	Job    *job
	Answer *answer
}

type toParent struct {
	Lookup  *effect.Ref
	Outcome *outcome
}

// server is the side of the process that renders.
type server struct {
	out     *gob.Encoder
	answers chan answer
}

// ask sends a lookup to the other process, which answers it.
func (s *server) ask(apiVersion, kind, namespace, name string) (map[string]any, error) {
	of := effect.Ref{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name}
	if err := s.out.Encode(toParent{Lookup: &of}); err != nil {
		return nil, err
	}
	got := <-s.answers
	switch {
	case got.Missing:
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: kind}, name)
	case got.Err != "":
		return nil, errors.New(got.Err)
	}
	return unpackPlain(got.Object)
}

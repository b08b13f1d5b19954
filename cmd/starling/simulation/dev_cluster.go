package simulation

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/sim"
)

// devCluster is what the flags of starling dev put into the simulated cluster. The files
// are read again each time: they may be part of what is being written.
type devCluster struct {
	files  []string
	config string

	last devInput  // what the cluster holds
	next *devInput // what was read since, and shown, or nil
}

// devInput is what the files say.
type devInput struct {
	objects []devObject
	user    map[string]string
}

// devObject is an object of a file.
type devObject struct {
	file string
	ref  effect.Ref
	obj  map[string]any
}

// paths are the files that it is read from.
func (c *devCluster) paths() []string {
	out := slices.Clone(c.files)
	if c.config != "" {
		out = append(out, c.config)
	}
	return out
}

func (c *devCluster) read() (*devInput, error) {
	in := &devInput{}
	for _, file := range c.files {
		list, err := readObjects(file, nil)
		if err != nil {
			return nil, err
		}
		for _, obj := range list {
			in.objects = append(in.objects, devObject{file, effect.RefOf(obj), obj})
		}
	}
	var err error
	if c.config != "" {
		in.user, _, err = readConfig(c.config, nil)
	}
	return in, err
}

// prepare fills a new cluster with what was shown last: what was saved since is news.
func (c *devCluster) prepare(w *sim.World) (err error) {
	in := c.next
	if c.next = nil; in == nil { // what a cluster refuses is read again the next time
		if in, err = c.read(); err != nil {
			return err
		}
	}
	if err = in.put(w, nil); err == nil {
		c.last, c.next = *in, in
	}
	return err
}

// update brings a cluster that lies over the last one to what the files say now.
func (c *devCluster) update(w *sim.World) error {
	in, err := c.read()
	if err != nil {
		return err
	}
	c.next = in
	return in.put(w, &c.last)
}

// keep does in the last one what update has done.
func (c *devCluster) keep(w *sim.World) error {
	if c.next == nil {
		return nil
	}
	before := c.last
	c.last = *c.next
	return c.next.put(w, &before)
}

// put brings a cluster that holds what the files said before, nil: nothing, to this.
func (in *devInput) put(w *sim.World, before *devInput) error {
	fresh := before == nil
	if fresh {
		before = &devInput{}
	}
	for _, o := range in.objects {
		if slices.ContainsFunc(before.objects, func(old devObject) bool { return reflect.DeepEqual(old, o) }) {
			continue
		}
		if err := w.Apply(o.obj); err != nil {
			return fmt.Errorf("%s: %w", o.file, err)
		}
	}
	for _, old := range before.objects {
		if slices.ContainsFunc(in.objects, func(o devObject) bool { return o.ref == old.ref }) {
			continue
		}
		if there, err := w.Get(old.ref); err != nil || there == nil {
			continue // somebody else has deleted it already
		}
		if err := w.Delete(old.ref); err != nil {
			return fmt.Errorf("%s: %w", old.file, err)
		}
	}
	if in.user == nil || !fresh && reflect.DeepEqual(in.user, before.user) {
		return nil
	}
	return w.Configure(in.user)
}

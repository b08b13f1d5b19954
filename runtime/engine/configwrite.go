package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
)

// configured has what a run changes of the user's config go to the object that holds the section of
// its module, or says why nothing must be changed. A change that the schema refuses would not come into force.
func (t *turn) configured(r *asked) error {
	changes := func(w effect.Write) bool { return w.Kind == effect.WriteConfig }
	if !slices.ContainsFunc(r.done.Effects.Writes, changes) {
		return nil
	}
	m, config := r.hook.module, t.config
	from, last := config.ValuesFrom(m.name), config.Accepted().Section(m.name)
	switch {
	case from != "":
	case config.Seen().State == ConfigUnreadable:
		return fmt.Errorf("the user's config cannot be changed: %s cannot be read", t.opts.configWhere())
	case config.Seen().State == ConfigMissing && config.Held():
		return fmt.Errorf("the user's config cannot be changed: %s is gone, and what it said last stays in force; create it again", t.opts.configWhere())
	}
	next, writes := last, slices.Clone(r.done.Effects.Writes)
	for i := range writes {
		w := &writes[i]
		if !changes(*w) {
			continue
		}
		change := *w.Config
		if from != "" {
			change.Object = true
			w.Ref = effect.Ref{APIVersion: effect.ModuleAPIVersion, Kind: effect.ModuleKind, Name: m.name}
		}
		change.Create = config.Seen().State == ConfigMissing
		if stands, _ := values.Stands(next, &change); !stands && !r.hook.paced(t.now, change.Path) {
			return fmt.Errorf("config %s of section %s is changed again and again: a change of the config has the hook run again; set the same value for the same config",
				values.PathString(change.Path), change.Key)
		}
		w.Config, next = &change, values.Configured(next, &change)
	}
	if size := sizeAt(m.gen.Decl.Config, next); size > maxConfig && size > sizeAt(m.gen.Decl.Config, last) {
		return fmt.Errorf("what module(config = […]) names would have %d KiB as JSON in the user's config, which all modules share; hooks may make it 32 KiB: keep more in a ConfigMap or a Secret",
			(size+1023)>>10)
	}
	if err := m.values.RefuseConfig(r.hook.gen.ID, r.hook.gen.Digest, next, last); err != nil {
		return errors.New(hidden(err.Error(), m.values.Secrets().Texts()))
	}
	r.done.Effects.Writes = writes
	return nil
}

// maxConfig bounds what the hooks of one module make of the user's config: it is one object of 1 MiB at most.
const maxConfig = 32 << 10

// sizeAt is the size of what stands at these paths of a section.
func sizeAt(paths []string, section map[string]any) (size int) {
	for _, text := range paths {
		v, _ := object.Get(section, object.Dotted(strings.TrimPrefix(text, values.GlobalKey+".")).Resolve(section))
		data, _ := json.Marshal(v) // plain data always marshals
		size += len(data)
	}
	return size
}

// configEvery and configBurst bound how often a hook changes one value of the user's config: hooks that
// run for a change of the config may go round in a circle.
const (
	configEvery = 10 * time.Second
	configBurst = 10
	// maxPaced bounds the values that one hook changes within configBurst times configEvery.
	maxPaced = 1000
)

// paced says whether the hook may change a value of the config now.
func (h *hook) paced(now time.Time, path []string) bool {
	at := values.PathString(path)
	if h.limits[at] == nil && len(h.limits) >= maxPaced {
		// A value that was not changed for long is as one that never was.
		maps.DeleteFunc(h.limits, func(of string, l *rate.Limiter) bool { return of != ofRuns && l.TokensAt(now) >= configBurst })
		if len(h.limits) >= maxPaced {
			return false
		}
	}
	if h.limits[at] == nil {
		h.limits[at] = rate.NewLimiter(rate.Every(configEvery), configBurst)
	}
	return h.limits[at].AllowN(now, 1)
}

package live

import (
	"context"
	"errors"
	"time"

	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/generation"
)

// mendsAfter is for how long a hook that fails, succeeds and fails again has to succeed before people are shown that
// it is well: objects on which it fails may come among others all the time.
const mendsAfter = 10 * time.Second

// health is whether a hook answers the API server.
type health struct {
	why    string // it fails; "": it does not
	digest string // of the code that has failed
	off    bool   // it has failed to convert, which it does while its module is off, too
	// failed and mended are the last times; flaps says that it has failed soon after it was mended, good that the last
	// request has succeeded.
	failed, mended     time.Time
	flaps, good, waits bool
}

// whyOf is why a hook with this code fails, "" when it does not.
func (h *health) whyOf(g *generation.Hook) string {
	if g == nil || g.Digest != h.digest {
		return ""
	}
	return h.why
}

// fails notes that a hook has not answered a request. It says whether people hear of that for the first time. They are
// shown the first reason: each request may have another one.
func (h *health) fails(g *generation.Hook, err error, off bool) (news bool) {
	news = h.whyOf(g) == "" || off && !h.off
	if news {
		h.why, h.off, h.flaps = err.Error(), off, time.Since(h.mended) < time.Minute
	}
	h.digest, h.failed, h.good = g.Digest, time.Now(), false
	return news
}

// succeeds notes that a hook has answered, and returns whether it is well again, or how long it has to succeed yet.
func (h *health) succeeds() (well bool, left time.Duration) {
	h.good = true
	if h.why == "" {
		return false, 0
	}
	if left = time.Until(h.failed.Add(mendsAfter)); left <= 0 || !h.flaps {
		h.why, h.off, h.mended = "", false, time.Now()
		return true, 0
	}
	return false, left
}

// heard takes in how a request of the API server ended. A hook that cannot run now says so elsewhere.
func (d *Driver) heard(h *generation.Hook, err error, converts bool) {
	if h == nil || d.generation.Load().Hook(h.ID) == nil || errors.Is(err, engine.ErrNotReady) || errors.Is(err, errStopping) || errors.Is(err, context.Canceled) {
		return
	}
	d.answers.mu.Lock()
	defer d.answers.mu.Unlock()
	of := &d.answers.of(h).health
	news := false
	if err != nil {
		news = of.fails(h, err, converts)
	} else if well, left := of.succeeds(); well {
		news = true
	} else if left > 0 && !of.waits {
		of.waits = true
		time.AfterFunc(left, func() {
			d.answers.mu.Lock()
			of.waits = false
			good := of.good
			d.answers.mu.Unlock()
			if good {
				d.heard(h, nil, converts)
			}
		})
	}
	if news {
		d.objects.Changed()
	}
}

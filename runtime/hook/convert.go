package hook

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/script"
)

// Convert answers a conversion request: each object goes through the shortest chain
// of functions that leads to the version asked for. The limits are those of one run
// for all objects.
func Convert(ctx context.Context, r Request, b *builtins.ConvertBinding, asked func(binding string)) Result {
	var response builtins.Response
	var converted atomic.Int64 // a function that does not end is given up, and goes on
	subject := ""
	if len(r.Request.Objects) > 0 {
		subject = effect.RefOf(r.Request.Objects[0]).String()
	}
	_, usage, err := r.Host.Call(ctx, b.Converted(r.Request, builtins.CtxOptions{Snapshots: r.Snapshots, Lacking: r.Lacking, Asked: asked}, &response, &converted), nil, script.CallOptions{
		Name:    r.Hook.ID,
		Context: &builtins.Context{Phase: spec.InConvert, Log: r.Log},
		Limits:  script.Limits{Wall: r.Hook.Timeout},
		Of:      b.First(),
		Subject: subject,
	})
	if err != nil {
		if n := int(converted.Load()); n < len(r.Request.Objects) {
			err = unconverted(err, r.Request, b, n)
		}
		return Result{Usage: usage, Err: err}
	}
	return Result{Usage: usage, Response: response}
}

// unconverted names the object on which a conversion has failed, and what is blocked meanwhile.
func unconverted(err error, r *builtins.Request, b *builtins.ConvertBinding, n int) error {
	ref := effect.RefOf(r.Objects[n])
	return fmt.Errorf("%w: %s cannot be converted from %s to %s: until it is, lists and watches of %s fail for everybody, and a namespace with it is not deleted; return something for every object",
		err, ref, ref.APIVersion, r.To, b.CRD)
}

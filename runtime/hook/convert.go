package hook

import (
	"context"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/script"
)

// convert answers a conversion request: each object goes through the shortest chain
// of functions that leads to the version asked for. The limits are those of one run
// for all objects.
func convert(ctx context.Context, r Request, b *builtins.ConvertBinding, asked func(binding string)) Result {
	var response builtins.Response
	subject := ""
	if len(r.Request.Objects) > 0 {
		subject = effect.RefOf(r.Request.Objects[0]).String()
	}
	_, usage, err := r.Host.Call(ctx, b.Converted(r.Request, builtins.CtxOptions{Snapshots: r.Snapshots, Lacking: r.Lacking, Asked: asked}, &response), nil, script.CallOptions{
		Name:    r.Hook.ID,
		Context: &builtins.Context{Phase: builtins.PhaseConvert, Log: r.Log},
		Limits:  script.Limits{Wall: r.Hook.Timeout},
		Of:      b.First(),
		Subject: subject,
	})
	if err != nil {
		return Result{Usage: usage, Err: err}
	}
	return Result{Usage: usage, Response: response}
}

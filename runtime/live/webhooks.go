package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/webhook"
)

// openWebhooks prepares the server of k8s.validate, k8s.mutate and k8s.convert.
func (d *Driver) openWebhooks(instance string) (err error) {
	var checkModule webhook.CheckModule
	if d.o.ModuleObjects {
		checkModule = d.checkModule
	}
	d.webhooks, err = webhook.New(webhook.Options{
		CheckModule: checkModule,
		Client:      d.o.Client, Generation: d.generation.Load(), Namespace: d.o.Namespace, Name: d.o.Name, Instance: instance,
		Endpoint: d.o.Webhooks,
		Leader:   d.leader, Answer: d.answer, Observe: d.metrics.answered, Registered: d.registered, TookOver: d.tellOfTakeover, Expires: func(at time.Time) { d.metrics.certificate.Set(float64(at.Unix())) },
		Log: d.o.Log, Grace: goneFor,
		Stays: func(module string) bool {
			stays, err := ask(d.work(), d, func(e *engine.Engine) bool { return e.MayBeRenamed(module) })
			return stays || err != nil
		},
	})
	return err
}

// registered shows people why the API server does not ask a hook. Conversions are asked while a module is off, too.
func (d *Driver) registered(hook string, err error) {
	h := d.generation.Load().Hook(hook)
	d.heard(h, err, h != nil && slices.ContainsFunc(h.Bindings, func(b builtins.Binding) bool { return b.Convert != nil }))
}

// tellOfTakeover makes an Event at a definition for its converter so far.
func (d *Driver) tellOfTakeover(definition effect.Ref, from string) {
	d.event(func(context.Context) (effect.Ref, string) { return definition, "" }, effect.Event{Type: "Warning", Reason: "ConversionTakenOver",
		Message: "instance " + d.o.Namespace + "/" + d.o.Name + " converts it now, in the place of " + from + "; `starling detach` gives it back"})
}

// leader is where the process that leads answers the API server, while this one stands by.
func (d *Driver) leader() string {
	is, _ := d.holder.now()
	if is.role != waits || is.forged {
		return ""
	}
	if at, _ := addressesOf(is.name); at != d.webhooksAt {
		return at
	}
	return ""
}

// isAsked says whether the API server asks a hook.
func isAsked(h *generation.Hook) bool {
	return h != nil && slices.ContainsFunc(h.Bindings, func(b builtins.Binding) bool { return b.Admission != nil || b.Convert != nil })
}

// answer has a hook answer a request of the API server.
func (d *Driver) answer(ctx context.Context, id string, r *builtins.Request) (builtins.Response, error) {
	var response builtins.Response
	var err error
	h := d.generation.Load().Hook(id)
	always := h != nil && converts(h, r.Binding)
	if always {
		response, err = d.convert(ctx, h, r)
	} else {
		response, err = d.review(ctx, id, r)
	}
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
		err = fmt.Errorf("hook %s has not answered in time", id)
	}
	d.heard(h, err, always)
	return response, err
}

// converts says that a request is a conversion that sees its object alone.
func converts(h *generation.Hook, binding string) bool {
	b := h.Binding(binding)
	return b != nil && b.Convert != nil && len(b.Convert.Snapshots) == 0
}

// convert answers a conversion without the engine: it depends on its functions alone, and must go on while a module is
// off or waits, because no object of its kind can be read meanwhile.
func (d *Driver) convert(ctx context.Context, h *generation.Hook, r *builtins.Request) (builtins.Response, error) {
	if why := d.marks.barred(h); why != "" {
		return builtins.Response{}, fmt.Errorf("hook %s: %s", h.ID, why)
	}
	gen := d.generation.Load()
	module := cmp.Or(gen.Modules[h.Module], gen.Global)
	if module == nil {
		return builtins.Response{}, fmt.Errorf("hook %s: it is not in the module tree any more", h.ID)
	}
	run := engine.RunHook{Run: d.answers.number(), Hook: h, Module: module, Attempt: 1, Now: d.clock.now(), Request: r}
	return d.runAnswer(ctx, run, "conversion")
}

// answered counts a request of the API server.
func (m *Metrics) answered(o webhook.Observation) {
	m.answers.WithLabelValues(o.Module, o.Hook, o.Result).Inc()
	m.answering.WithLabelValues(o.Module, o.Hook).Observe(o.Took.Seconds())
}

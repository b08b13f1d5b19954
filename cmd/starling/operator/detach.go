package operator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/starling-operator/starling/cmd/starling/command"
	"github.com/starling-operator/starling/cmd/starling/instance"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine/finalizers"
	"github.com/starling-operator/starling/runtime/executor"
	"github.com/starling-operator/starling/runtime/webhook"
)

// detachFlags are the flags of `starling detach`.
type detachFlags struct {
	instance instance.Instance
	access   instance.Access
	output   string
}

// detached is one object that was changed.
type detached struct {
	effect.Ref
	Done string `json:"done"`
}

func newDetachCommand() *cobra.Command {
	f := &detachFlags{}
	cmd := &cobra.Command{
		Use:   "detach",
		Short: "Take away what would outlive a starling that is gone, and get in the way",
		Long: `Deletes the webhook configurations of an instance and ends the conversions that
lead to it (what has converted before does so again; else strategy None: objects stored
in another version then show as they are stored), and takes the finalizers of hooks with a cleanup, and of controllers, off their
objects: these then go without the cleanup, and without waiting for their children.
Children, releases, and all else that runs, are left alone; those that have the object as
their owner go with it. Run it when this starling is stopped for good, or does not answer
any more; one that runs would put it all back, so it waits for the end of one, for half a
minute. It asks nothing and may be repeated.`,
		Example: `  starling detach
  starling detach --namespace addons --name second -o json`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	f.instance.AddFlags(cmd.Flags())
	f.access.AddFlags(cmd.Flags())
	command.OutputFlag(cmd, &f.output, "`format`: text, yaml or json", "text", "yaml", "json")
	return cmd
}

func (f *detachFlags) run(cmd *cobra.Command) error {
	if err := f.instance.Complete(); err != nil {
		return err
	}
	client, err := f.access.Connect(cmd.Context(), f.instance.Namespace, zerolog.Nop(), nil)
	if err != nil {
		return err
	}
	i := effect.Instance{Namespace: f.instance.Namespace, Name: f.instance.Name}
	if err := ended(cmd, client, i); err != nil {
		return err
	}
	all := []detached{}
	done := func(ref effect.Ref, how string) {
		all = append(all, detached{ref, how})
		if f.output == "text" {
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", ref, how)
		}
	}
	err = webhook.Detach(cmd.Context(), client, i.Label(), func(d webhook.Detached) { done(d.Ref, d.Done) })
	err = errors.Join(err, detachFinalizers(cmd.Context(), client, i, done))
	switch {
	case f.output != "text":
		err = errors.Join(err, status.Encode(cmd.OutOrStdout(), f.output, all))
	case len(all) == 0 && err == nil:
		command.Say(cmd, "nothing to detach")
	}
	return err
}

// ending is how long a process that was told to end may go on renewing its Lease.
const ending = 30 * time.Second

// ended waits until nobody holds the instance's Lease, for who leads puts back what is taken away. Clocks of two
// machines may differ, so a Lease has run out when it stays as it is.
func ended(cmd *cobra.Command, client *cluster.Client, i effect.Instance) error {
	ref := effect.Ref{APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Namespace: i.Namespace, Name: i.Name}
	began, since, last := time.Now(), time.Time{}, any(nil)
	for {
		lease, err := client.Get(cmd.Context(), ref)
		spec, _ := lease["spec"].(map[string]any)
		holder, _ := spec["holderIdentity"].(string)
		seconds, _ := spec["leaseDurationSeconds"].(int64)
		switch renewed := spec["renewTime"]; {
		case err != nil && !apierrors.IsForbidden(err):
			return err
		case holder == "" || renewed == last && time.Since(since) > time.Duration(seconds)*time.Second:
			return nil
		case renewed != last && time.Since(began) > ending:
			return fmt.Errorf("starling %s/%s runs (%s) and puts back what is taken away; stop it first", i.Namespace, i.Name, holder)
		case last == nil:
			command.Say(cmd, "waits until starling %s/%s (%s) has ended", i.Namespace, i.Name, holder)
			fallthrough
		case renewed != last:
			last, since = renewed, time.Now()
		}
		select {
		case <-cmd.Context().Done():
			return cmd.Context().Err()
		case <-time.After(time.Second):
		}
	}
}

// detachFinalizers frees the objects that wait for a cleanup, or for their children.
func detachFinalizers(ctx context.Context, client *cluster.Client, i effect.Instance, done func(ref effect.Ref, how string)) error {
	o := cluster.KeptOptions{Client: client, Namespace: i.Namespace, Name: i.Name, Instance: i.Label()}
	kept, err := cluster.NewKept(o).Load(ctx)
	if err != nil {
		return fmt.Errorf("which finalizers there are is not known: %w", err)
	}
	w := cluster.NewWriter(cluster.WriterOptions{Client: client, Namespace: i.Namespace, Name: i.Name, Instance: o.Instance})
	var errs []error
	for _, module := range slices.Sorted(maps.Keys(kept)) {
		for _, f := range finalizers.Read(kept[module]) {
			nothing, none := func(map[string]any) bool { return false }, func(effect.Ref) (bool, error) { return false, nil }
			errs = append(errs, executor.ReleaseFinalizer(ctx, client, w, f.APIVersion, f.Kind, f.Name, nothing, none, func(ref effect.Ref) {
				done(ref, "finalizer "+f.Name+" taken off")
			}))
		}
	}
	return errors.Join(errs...)
}

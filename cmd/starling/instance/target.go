package instance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/starling-operator/starling/cmd/starling/command"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/admin"
	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/message"
	"github.com/starling-operator/starling/runtime/replicas"
)

// askWithin bounds one question to a process in a cluster, the start of the command there included.
const askWithin = 30 * time.Second

// Target is whom a command asks: the starling of this machine, or those in the pods of a cluster.
type Target struct {
	Instance Instance
	Access   Access
	Dev      bool // the starling dev of this machine is asked
	pod      string

	api   *cluster.Client // of the cluster, once it was asked
	asked *admin.Client   // that of the last question to a cluster
	// looked is when the pods were asked which of them leads.
	looked time.Time
}

// lookAgain is for how long a pod that stands by is asked before the one that leads is looked for again: to do so is a
// process in each pod.
const lookAgain = 5 * time.Second

// AddFlags declares the flags of both.
func (t *Target) AddFlags(fs *pflag.FlagSet) {
	t.Instance.AddFlags(fs)
	fs.StringVar(&t.Access.kubeconfig, "kubeconfig", "", "ask the pods of the instance in the cluster of this `file`, and nobody on this machine")
	fs.StringVar(&t.Access.context, "context", "", "ask the pods of the instance in the cluster of this `context` of the kubeconfig, and nobody on this machine")
	t.AddPod(fs)
}

// AddPod declares --pod.
func (t *Target) AddPod(fs *pflag.FlagSet) {
	fs.StringVar(&t.pod, "pod", "", "ask this `pod` of the instance (default: the one that leads; for runs and logs all)")
}

// AddDev declares --dev, for commands that a starling dev answers.
func (t *Target) AddDev(fs *pflag.FlagSet) {
	fs.BoolVar(&t.Dev, "dev", false, "ask the starling dev of this machine, whose cluster is simulated, and no starling run")
}

// Remote says whether pods are asked.
func (t *Target) Remote() bool { return t.Access != (Access{}) || t.pod != "" }

// Client checks the flags and says whom to ask: of pods the one that leads, or one that stands by when none does.
func (t *Target) Client(cmd *cobra.Command) (*admin.Client, error) {
	t.Instance.Dev = t.Dev
	if t.Dev && t.Remote() {
		return nil, errors.New("--dev asks a process of this machine, and --context, --kubeconfig and --pod ask pods of a cluster; give one of both")
	}
	if !t.Remote() {
		if err := t.Instance.Complete(); err != nil {
			return nil, err
		}
		return admin.NewClient(admin.ClientOptions{Socket: t.Instance.Socket()}), nil
	}
	if t.Instance.StateDir != "" {
		return nil, errors.New("--state-dir is a folder of this machine, and --context, --kubeconfig and --pod ask pods of a cluster; give one of both")
	}
	if t.asked != nil {
		if r, err := t.asked.Replica(cmd.Context()); err == nil && (r.Leader || t.pod != "" || time.Since(t.looked) < lookAgain) {
			return t.asked, nil
		}
		t.asked.Close()
		t.asked = nil
	}
	pods, err := t.pods(cmd.Context())
	if err != nil {
		return nil, err
	}
	t.looked = time.Now()
	var failed error
	for _, p := range pods {
		client := t.dial(p)
		r, err := client.Replica(cmd.Context())
		leads := err == nil && (r.Leader || t.pod != "")
		if failed = cmp.Or(failed, err); leads || err == nil && t.asked == nil {
			t.asked, client = client, t.asked
		}
		if client != nil {
			client.Close()
		}
		if leads {
			return t.asked, nil
		}
	}
	if t.asked == nil || cmd.Context().Err() != nil {
		return nil, cmp.Or(failed, cmd.Context().Err())
	}
	if failed != nil {
		command.Say(cmd, "note: %v", failed)
	}
	return t.asked, nil
}

// pods are those of the instance, or the one that was named.
func (t *Target) pods(ctx context.Context) (pods []replicas.Pod, err error) {
	if err := t.Instance.CompleteNames(); err != nil {
		return nil, err
	}
	if t.api == nil {
		if t.api, err = t.Access.Connect(ctx, t.Instance.Namespace, zerolog.Nop(), nil); err != nil {
			return nil, err
		}
	}
	if pods, err = replicas.Find(ctx, replicas.Options{Client: t.api, Namespace: t.Instance.Namespace, Name: t.Instance.Name}); err != nil || t.pod == "" {
		return pods, err
	}
	var names []string
	for _, p := range pods {
		if p.Name == t.pod {
			return []replicas.Pod{p}, nil
		}
		names = append(names, p.Name)
	}
	return nil, fmt.Errorf("starling %s/%s has no pod %q; %s", t.Instance.Namespace, t.Instance.Name, t.pod, message.DidYouMean(t.pod, names, "see: starling get replicas"))
}

// dial is a client of the process in a pod.
func (t *Target) dial(p replicas.Pod) *admin.Client {
	dial := func(ctx context.Context) (net.Conn, error) { return p.Dial(ctx, t.api) }
	return admin.NewClient(admin.ClientOptions{Socket: "pod " + p.Namespace + "/" + p.Name, Dial: dial, Timeout: askWithin})
}

// each asks all pods, one after the other. One that cannot be asked is a note, and an error when no other one can.
func (t *Target) each(cmd *cobra.Command, pods []replicas.Pod, ask func(replicas.Pod, *admin.Client) error) error {
	var failed []error
	for _, p := range pods {
		client := t.dial(p)
		err := ask(p, client)
		client.Close()
		if err != nil {
			failed = append(failed, err)
		}
		if cmd.Context().Err() != nil {
			break
		}
	}
	if len(failed) == len(pods) {
		return failed[0]
	}
	for _, err := range failed {
		command.Say(cmd, "note: %v", err)
	}
	return nil
}

// Standing are the notes that a process does not lead, and that the tree as it is now is not in force. It asks for the
// replica, as the whole status is large where there are many modules.
func Standing(cmd *cobra.Command, client *admin.Client) []string {
	r, err := client.Replica(cmd.Context())
	if err != nil {
		return nil // the question itself says what is wrong
	}
	return standingOf(r)
}

// StandingOf are the notes of [Standing], of a process whose status is known.
func StandingOf(st status.Status) []string {
	return standingOf(status.Replica{
		Leader: st.Leader, Holder: st.Holder, Generation: st.Generation, ReloadFailed: st.ReloadFailed,
	})
}

func standingOf(r status.Replica) (notes []string) {
	if !r.Leader {
		notes = append(notes, StandbyNote(r.Holder))
	}
	if f := r.ReloadFailed; f != nil {
		notes = append(notes, fmt.Sprintf("the module tree has changed and does not load as it is now, so generation %d stays in force: %s", r.Generation, f.Reason))
	}
	return notes
}

// StandbyNote says that a process waits for the one that leads.
func StandbyNote(holder string) string {
	return "this starling stands by: it waits for the lease, which " + cmp.Or(holder, "another one") + " holds"
}

// Replicas asks the process of this machine, or each pod, how it is.
func (t *Target) Replicas(cmd *cobra.Command) ([]status.Replica, error) {
	if !t.Remote() {
		client, err := t.Client(cmd)
		if err != nil {
			return nil, err
		}
		r, err := client.Replica(cmd.Context())
		return []status.Replica{r}, t.Instance.Explain(err)
	}
	pods, err := t.pods(cmd.Context())
	if err != nil {
		return nil, err
	}
	found := make([]status.Replica, len(pods))
	var asking sync.WaitGroup
	for i, p := range pods {
		asking.Go(func() {
			client := t.dial(p)
			defer client.Close()
			r, err := client.Replica(cmd.Context())
			if err != nil {
				r = status.Replica{Reason: err.Error()}
			}
			r.Name, r.Node = p.Name, p.Node
			found[i] = r
		})
	}
	asking.Wait()
	return found, nil
}

// NewAdminSocketCommand returns what runs in a pod that is asked.
func NewAdminSocketCommand() *cobra.Command {
	i := &Instance{}
	cmd := &cobra.Command{
		Use:    replicas.Command,
		Short:  "Copy stdin to the admin socket of the starling that runs here, and its answers to stdout",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := i.Complete(); err != nil {
				return err
			}
			conn, err := admin.Dial(cmd.Context(), i.Socket())
			if err != nil {
				return i.Explain(err)
			}
			defer conn.Close()
			ended := make(chan struct{})
			go func() { // its end is that of stdin, or of the process
				_, _ = io.Copy(conn, cmd.InOrStdin())
				_ = conn.CloseWrite()
				close(ended)
			}()
			context.AfterFunc(cmd.Context(), func() { conn.Close() })
			_, err = io.Copy(cmd.OutOrStdout(), conn)
			select {
			case <-ended:
				return nil // nobody listens any more
			default:
				return err
			}
		},
	}
	i.AddFlags(cmd.Flags())
	return cmd
}

// sorted merges the lists of several pods.
func sorted[T any](lists [][]T, less func(a, b T) int) []T {
	all := slices.Concat(lists...)
	slices.SortStableFunc(all, less)
	return all
}

package instance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/starling-operator/starling/runtime/admin"
	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/live"
	"github.com/starling-operator/starling/runtime/record"
	"github.com/starling-operator/starling/runtime/replicas"
)

// Records are the recorded runs of a target: those in the folder of this machine, or those of all pods.
type Records struct {
	*Target
	keyFile string
	// Keep is for how long an answer of list counts, for those that show page after page: to ask is a process in each pod.
	Keep time.Duration

	kept   []record.Header
	others int
	asked  time.Time // when these were
}

// AddFlags declares --key-file.
func (r *Records) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&r.keyFile, "key-file", "", "`file` with the key of the records, as data.key of the Secret <name>-records has it (default: asks the starling that is asked for the runs, then the cluster)")
}

// ErrNoDevRecords is the answer about runs of a starling dev.
var ErrNoDevRecords = errors.New("starling dev keeps no records of runs; a test, or starling repl, shows what one run does")

// inPods says whether pods are asked. With --state-dir the folder counts, and --context says where its key is.
func (r *Records) inPods() bool { return r.Remote() && r.Instance.StateDir == "" }

// Where says in words where the records are.
func (r *Records) Where() string {
	if r.inPods() {
		return "by the pods of " + r.Instance.Namespace + "/" + r.Instance.Name
	}
	return "in " + r.dir()
}

func (r *Records) dir() string { return live.RecordsDir(r.Instance.StateDir) }

// List returns the headers of all runs, the newest first, and how many there are of other versions.
func (r *Records) List(cmd *cobra.Command) (runs []record.Header, others int, err error) {
	if r.inPods() && time.Since(r.asked) < r.Keep {
		return r.kept, r.others, nil
	}
	if runs, others, err = r.ask(cmd); err == nil {
		r.kept, r.others, r.asked = runs, others, time.Now()
	}
	return runs, others, err
}

// Forget has the next answer be a new one.
func (r *Records) Forget() { r.asked = time.Time{} }

func (r *Records) ask(cmd *cobra.Command) (runs []record.Header, others int, err error) {
	if r.Dev {
		return nil, 0, ErrNoDevRecords
	}
	if !r.inPods() {
		if err := r.Instance.Complete(); err != nil {
			return nil, 0, err
		}
		key, err := r.nearby(cmd.Context(), r.local())
		if err != nil {
			return nil, 0, err
		}
		return record.List(r.dir(), key)
	}
	pods, err := r.pods(cmd.Context())
	if err != nil {
		return nil, 0, err
	}
	var lists [][]record.Header
	err = r.each(cmd, pods, func(_ replicas.Pod, client *admin.Client) error {
		of, err := client.Runs(cmd.Context())
		lists, others = append(lists, of.Headers), others+of.Others
		return err
	})
	return sorted(lists, func(a, b record.Header) int {
		return cmp.Or(b.Started.Compare(a.Started), strings.Compare(b.ID, a.ID))
	}), others, err
}

// Load opens one run.
func (r *Records) Load(cmd *cobra.Command, id string) (*record.Record, error) {
	if r.inPods() {
		return r.loadOfPods(cmd, id)
	}
	if err := r.Instance.Complete(); err != nil {
		return nil, err
	}
	// First whether there is such a run: for that no key is needed.
	if err := record.Check(r.dir(), id); err != nil {
		return nil, err
	}
	key, err := r.key(cmd.Context())
	if err != nil {
		return nil, err
	}
	return record.Load(r.dir(), id, key)
}

// loadOfPods opens one run of the pod that has it. Its files stay sealed on this machine, and go again.
func (r *Records) loadOfPods(cmd *cobra.Command, id string) (found *record.Record, err error) {
	ctx := cmd.Context()
	pods, err := r.pods(ctx)
	if err != nil {
		return nil, err
	}
	var broken error
	err = r.each(cmd, pods, func(_ replicas.Pod, client *admin.Client) error {
		if found != nil || broken != nil {
			return nil
		}
		runs, err := client.Runs(ctx)
		if err != nil || !slices.ContainsFunc(runs.Headers, func(h record.Header) bool { return h.ID == id }) {
			return err
		}
		found, broken = r.fetch(ctx, client, id)
		return nil
	})
	if err = cmp.Or(err, broken); err == nil && found == nil {
		var names []string
		for _, p := range pods {
			names = append(names, p.Name)
		}
		err = fmt.Errorf("no run %s is kept in %s; see: starling get runs", id, strings.Join(names, ", "))
	}
	return found, err
}

// fetch opens a run of one pod.
func (r *Records) fetch(ctx context.Context, client *admin.Client, id string) (*record.Record, error) {
	files, err := client.Record(ctx, id)
	if err != nil {
		return nil, err
	}
	key, err := r.nearby(ctx, client)
	if key == nil && err == nil {
		_, err = client.RecordsKey(ctx) // which says why
	}
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "starling-record-")
	if err != nil {
		return nil, fmt.Errorf("cannot keep the record for a moment: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := record.Unpack(dir, files); err != nil {
		return nil, err
	}
	return record.Load(dir, id, key)
}

func (r *Records) local() *admin.Client {
	return admin.NewClient(admin.ClientOptions{Socket: r.Instance.Socket()})
}

// nearby returns the key of the file, or of a process: nil when it has none.
func (r *Records) nearby(ctx context.Context, client *admin.Client) (*record.Key, error) {
	if r.keyFile != "" {
		data, err := os.ReadFile(r.keyFile)
		if err != nil {
			return nil, fmt.Errorf("--key-file: %w", err)
		}
		key, err := record.ParseKey(data)
		if err != nil {
			return nil, fmt.Errorf("--key-file %s: %w", r.keyFile, err)
		}
		return key, nil
	}
	data, err := client.RecordsKey(ctx)
	if err != nil {
		return nil, nil // it may be elsewhere
	}
	return record.ParseKey(data)
}

// key returns the key of the records of this machine, from wherever it is.
func (r *Records) key(ctx context.Context) (*record.Key, error) {
	key, err := r.nearby(ctx, r.local())
	if key != nil || err != nil {
		return key, err
	}
	i := &r.Instance
	client, err := r.Access.Connect(ctx, i.Namespace, zerolog.Nop(), nil)
	if err == nil {
		key, err = record.FetchKey(ctx, cluster.SecretKey{
			Client: client, Namespace: i.Namespace, Name: i.Name, Instance: effect.Instance{Namespace: i.Namespace, Name: i.Name}.Label(),
		})
	}
	if err != nil {
		return nil, fmt.Errorf("the records of %s/%s are sealed, and their key is not at hand: no starling runs here with this --state-dir, and %w; give --key-file", i.Namespace, i.Name, err)
	}
	return key, nil
}

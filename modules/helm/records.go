package helm

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// Records are the revisions of releases in a namespace, where Helm keeps them: each in a Secret.
type Records struct{ Secrets corev1client.SecretInterface }

const (
	// maxRecord is how much a revision may unpack to.
	maxRecord = 128 << 20
	// maxSecret is the limit of the API server for the data of one Secret, and headroom is for what is written later:
	// states of hooks, a description.
	maxSecret, headroom = 1 << 20, 8 << 10
)

// ownLabels are those of the Secret itself.
var ownLabels = []string{"name", "owner", "status", "version", "createdAt", "modifiedAt"}

// Unreadable is the error about a Secret that holds no revision.
type Unreadable struct {
	Key string
	Err error
}

// Error says what is wrong with it.
func (u *Unreadable) Error() string {
	return fmt.Sprintf("Secret %s holds no revision: %s", u.Key, u.Err)
}

// Key is the name of the Secret of a revision.
func Key(name string, revision int) string {
	return fmt.Sprintf("sh.helm.release.v1.%s.v%d", name, revision)
}

// Get reads a revision, and the uid of its Secret. The error is NotFound where there is none.
func (r Records) Get(ctx context.Context, name string, revision int) (rel *Release, uid string, err error) {
	s, err := r.Secrets.Get(ctx, Key(name, revision), metav1.GetOptions{})
	if err != nil {
		return nil, "", err
	}
	if rel, err = decode(s.Data["release"]); err != nil {
		return nil, "", &Unreadable{s.Name, err}
	}
	rel.Name, rel.Version, rel.Namespace = name, revision, s.Namespace // whatever somebody has written there
	rel.Labels = maps.Clone(s.Labels)
	maps.DeleteFunc(rel.Labels, func(key, _ string) bool { return slices.Contains(ownLabels, key) })
	return rel, string(s.UID), nil
}

// Create keeps a new revision. The error is AlreadyExists where somebody else has made it, or about one that is too
// large for a Secret.
func (r Records) Create(ctx context.Context, rel *Release) (uid string, err error) {
	s, err := secretOf(rel, "createdAt")
	if err == nil {
		err = fits(rel, len(s.Data["release"]))
	}
	if err == nil {
		s, err = r.Secrets.Create(ctx, s, metav1.CreateOptions{})
	}
	if err != nil {
		return "", err
	}
	return string(s.UID), nil
}

// Update writes a revision that is kept.
func (r Records) Update(ctx context.Context, rel *Release) error {
	s, err := secretOf(rel, "modifiedAt")
	if err == nil {
		_, err = r.Secrets.Update(ctx, s, metav1.UpdateOptions{})
	}
	return err
}

// Delete deletes a revision.
func (r Records) Delete(ctx context.Context, name string, revision int) error {
	return r.Secrets.Delete(ctx, Key(name, revision), metav1.DeleteOptions{})
}

// fits refuses a revision that takes too many bytes in its Secret. Subcharts are not stored.
func fits(rel *Release, size int) error {
	if size+headroom <= maxSecret {
		return nil
	}
	files := len(rel.Chart.Schema)
	for _, f := range slices.Concat(rel.Chart.Templates, rel.Chart.Files) {
		files += len(f.Data)
	}
	return fmt.Errorf("the release would take %d KiB of its Secret's 1024 KiB (chart files %d KiB, manifest %d KiB, before "+
		"packing): take files that templates do not use out of the chart, or split it", size>>10, files>>10, len(rel.Manifest)>>10)
}

func secretOf(rel *Release, stamp string) (*corev1.Secret, error) {
	data, err := encode(rel)
	if err != nil {
		return nil, fmt.Errorf("revision %d cannot be stored: %w", rel.Version, err)
	}
	labels := map[string]string{stamp: strconv.FormatInt(time.Now().Unix(), 10)}
	maps.Copy(labels, rel.Labels)
	labels["name"], labels["owner"] = rel.Name, "helm"
	labels["status"], labels["version"] = rel.Info.Status.String(), strconv.Itoa(rel.Version)
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: Key(rel.Name, rel.Version), Labels: labels},
		Type:       "helm.sh/release.v1", Data: map[string][]byte{"release": data},
	}, nil
}

func encode(rel *Release) ([]byte, error) {
	text, err := json.Marshal(rel)
	if err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	zip, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err == nil {
		_, err = zip.Write(text)
	}
	if err == nil {
		err = zip.Close()
	}
	return base64.StdEncoding.AppendEncode(nil, packed.Bytes()), err
}

func decode(data []byte) (*Release, error) {
	text, err := base64.StdEncoding.AppendDecode(nil, data)
	if err != nil {
		return nil, err
	}
	if bytes.HasPrefix(text, []byte{0x1f, 0x8b, 0x08}) { // Helm has not always packed them
		zip, err := gzip.NewReader(bytes.NewReader(text))
		if err != nil {
			return nil, err
		}
		if text, err = io.ReadAll(io.LimitReader(zip, maxRecord+1)); err != nil {
			return nil, err
		}
		if len(text) > maxRecord {
			return nil, fmt.Errorf("it unpacks to more than %d MiB", maxRecord>>20)
		}
	}
	rel := &Release{}
	if err := json.Unmarshal(text, rel); err != nil {
		return nil, err
	}
	if rel.Info == nil {
		rel.Info = &Info{}
	}
	rel.Hooks = slices.DeleteFunc(rel.Hooks, func(h *Hook) bool { return h == nil })
	return rel, nil
}

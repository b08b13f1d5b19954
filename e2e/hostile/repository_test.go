package hostile

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/starling-operator/starling/modules/tree"
)

// zeros is the archive of a chart with so many MiB of zeros.
func zeros(t *testing.T, mib int) []byte {
	t.Helper()
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	tape := tar.NewWriter(zip)
	err := tape.WriteHeader(&tar.Header{Name: "zeros/templates/a", Mode: 0o644, Size: int64(mib) << 20})
	for range mib {
		if err == nil {
			_, err = tape.Write(make([]byte, 1<<20))
		}
	}
	if err != nil || tape.Close() != nil || zip.Close() != nil {
		t.Fatal("cannot write an archive: ", err)
	}
	return b.Bytes()
}

// Chart repositories that send without an end, large indexes, archives of zeros, or nothing: the
// process keeps to its memory, and the healthy module goes on.
func TestChartRepositories(t *testing.T) {
	bomb := zeros(t, 400)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch kind, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/"); kind {
		case "endless":
			for block := make([]byte, 1<<20); ; {
				if _, err := w.Write(block); err != nil {
					return
				}
			}
		case "values":
			io.WriteString(w, "entries: ["+strings.Repeat("{},", 1<<20)+"]\n")
		case "aliases":
			io.WriteString(w, aliases)
		case "zeros":
			w.Write(bomb)
		default:
			<-r.Context().Done()
		}
	}))
	defer srv.Close()
	rows := map[string]string{
		"endless": "it is larger than 4 MiB",
		"values":  "/index.yaml is too large: it holds more than",
		"aliases": "/index.yaml is too large: with its aliases",
		"zeros":   "packed charts hold more than 32 MiB",
		"silent":  "it is being fetched",
	}
	a := newArena(t)
	locked, attacks := map[string]tree.Locked{}, []attack{}
	for kind, says := range rows {
		for i := range 4 {
			name := fmt.Sprintf("%s-%d", kind, i)
			l := tree.Locked{URL: srv.URL + "/" + kind + "/" + name, Version: "1.0.0", Digest: fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(name)))}
			if kind == "zeros" {
				l.Digest, l.ArchiveURL = fmt.Sprintf("sha256:%x", sha256.Sum256(bomb)), srv.URL+"/zeros/"+name+".tgz"
			}
			locked[name] = l
			by := attack{name: name, says: []string{says}}
			if kind == "silent" && i > 1 { // two are left for the others, which are four at once
				delete(locked, name)
				continue
			}
			attacks = append(attacks, by)
			a.write(map[string]string{name + "/module.star": fmt.Sprintf("module(enabled = True, chart = %q, version = %q)\n", l.URL, l.Version)})
		}
	}
	lock, err := tree.FormatLock(locked)
	if err != nil {
		t.Fatal(err)
	}
	a.write(map[string]string{tree.LockFile: string(lock)})
	a.start()
	beats := a.beat(a.waitBeat())
	for _, by := range attacks {
		a.waitSays(by)
	}
	beats.end()
	a.stop()
}

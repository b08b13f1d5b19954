package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// volume is a module tree as the kubelet, or git-sync, gives it to a pod.
type volume struct {
	f       *fixture
	link    string // what is replaced: "..data", or "../current"
	version int
	files   map[string]string
}

// newVolume has the instance read its tree from a volume.
func newVolume(f *fixture, link string, files map[string]string) *volume {
	f.t.Helper()
	v := &volume{f: f, files: maps.Clone(files)}
	root := f.t.TempDir()
	v.link = filepath.Join(root, link)
	if f.modules = root; link != "..data" {
		f.modules = v.link
	}
	v.swap(nil)
	return v
}

// swap puts the next state of the files in the place of the one before, in one step; an
// empty text removes a file.
func (v *volume) swap(edit map[string]string) {
	v.f.t.Helper()
	maps.Copy(v.files, edit)
	maps.DeleteFunc(v.files, func(_, text string) bool { return text == "" })
	v.version++
	old, _ := os.Readlink(v.link)
	name := fmt.Sprintf("..version-%d", v.version)
	dir := filepath.Join(filepath.Dir(v.link), name)
	at := *v.f
	at.modules = dir
	at.write(v.files)
	v.must(os.Symlink(name, v.link+".tmp"))
	v.must(os.Rename(v.link+".tmp", v.link))
	if old != "" {
		v.must(os.RemoveAll(filepath.Join(filepath.Dir(v.link), old)))
	}
	if filepath.Base(v.link) != "..data" {
		return
	}
	for path := range v.files { // those that people see
		top, _, _ := strings.Cut(path, "/")
		link := filepath.Join(v.f.modules, top)
		if _, err := os.Lstat(link); os.IsNotExist(err) {
			v.must(os.Symlink("..data/"+top, link))
		}
	}
}

func (v *volume) must(err error) {
	v.f.t.Helper()
	if err != nil {
		v.f.t.Fatal(err)
	}
}

// waitGeneration waits until a generation is in force, and all is well with it.
func (f *fixture) waitGeneration(least int) {
	f.t.Helper()
	f.eventually(fmt.Sprintf("generation %d", least), func() error {
		st, err := f.status()
		if err == nil && (st.Generation < least || st.ReloadFailed != nil) {
			err = fmt.Errorf("generation %d is in force, %+v", st.Generation, st.ReloadFailed)
		}
		return err
	})
}

// waitReloadFailed waits until the status, the metric and `starling get modules` say that
// the tree is not in force, and why.
func (f *fixture) waitReloadFailed(texts ...string) {
	f.t.Helper()
	f.eventually("the reload has failed", func() error {
		st, err := f.status()
		if err != nil {
			return err
		}
		if st.ReloadFailed == nil {
			return fmt.Errorf("generation %d is in force", st.Generation)
		}
		if n := f.metric(`starling_reload_failed`); n != 1 {
			return fmt.Errorf("starling_reload_failed is %v", n)
		}
		return holds(st.ReloadFailed.Reason, texts)
	})
}

// metric adds up the samples of one name, with these texts in their labels.
func (f *fixture) metric(name string, labels ...string) (sum float64) {
	f.t.Helper()
	_, page, err := f.http("/metrics")
	if err != nil {
		f.t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^`+name+`(\{[^}]*\})? (\S+)$`).FindAllStringSubmatch(page, -1) {
		if holds(m[1], labels) == nil {
			n, err := strconv.ParseFloat(m[2], 64)
			if err != nil {
				f.t.Fatal(err)
			}
			sum += n
		}
	}
	return sum
}

// requests are those to the API server so far that list or watch: with streamed lists
// both are watches; gets are lists, too.
func (f *fixture) requests() (gets, watches float64) {
	return f.metric("starling_api_requests_total", `verb="get"`), f.metric("starling_api_requests_total", `verb="watch"`)
}

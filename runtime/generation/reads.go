package generation

import (
	"io/fs"
	"strings"

	"github.com/starling-operator/starling/modules/reads"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/script"
)

// findReads notes what a module that is loaded reads of the global values, once that is known
// of its chart.
func (l *loader) findReads(m *Module) {
	m.Reads = nil
	if m.inputs == nil || m.Err != nil || m.ChartValues != nil { // that function gets all values
		return
	}
	all := m.ChartReads
	for path := range m.inputs {
		if !strings.HasPrefix(path, "@") { // the standard library reads none
			all = reads.Join(all, l.scriptReads(path))
		}
	}
	m.Reads = all
}

func chartReads(c *tree.Chart) (all, exports *reads.Reads) {
	if c == nil {
		return &reads.Reads{}, &reads.Reads{}
	}
	files := make(map[string][]byte, len(c.Files))
	for _, f := range c.Files {
		files[f.Path] = f.Data
	}
	all = reads.Chart(files)
	return all, reads.Exports(all, files)
}

// scriptReads are the reads of one file, which many modules may load.
func (l *loader) scriptReads(path string) *reads.Reads {
	l.mu.Lock()
	defer l.mu.Unlock()
	known, there := l.reads[path]
	if !there {
		known = readsOf(l.tree, path)
		l.reads[path] = known
	}
	return known
}

func readsOf(files fs.FS, path string) *reads.Reads {
	data, err := fs.ReadFile(files, path)
	if err != nil {
		return nil
	}
	if !strings.Contains(string(data), "values") {
		return &reads.Reads{}
	}
	file, err := script.Parse(path, data)
	if err != nil {
		return nil
	}
	return reads.Script(file)
}

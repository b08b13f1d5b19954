package lsp

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"go.starlark.net/syntax"

	"github.com/starling-operator/starling/lsp/text"
	"github.com/starling-operator/starling/modules/check"
	"github.com/starling-operator/starling/modules/tree"
)

const (
	// maxDocuments is how many documents a client may have open.
	maxDocuments = 2000
	// maxDocument is the largest document, in bytes: larger files are none of a tree.
	maxDocument = tree.MaxFileBytes
	// maxFolders is how many trees are kept though none of their files is open: people close a file and open the next.
	maxFolders = 8
)

// document is a file that is open in the editor: its buffer counts, and not what is on the disk.
type document struct {
	uri, path string
	version   int
	text      *text.Text
	// lost: an edit could not be made, so nobody knows the text until it comes as a whole.
	lost bool
	// folder is the tree that it is of; nil for none. inTree is the path in it.
	folder *folder
	inTree string
	// parsed is the text when it was last a file of Starlark, with its syntax tree; nil: it never was.
	parsed *parsedText
}

// parsedText is a text of Starlark.
type parsedText struct {
	text *text.Text
	file *syntax.File // with its names bound
}

func (d *document) starlark() bool { return strings.HasSuffix(d.path, ".star") }

func (s *Server) didOpen(p didOpenParams) error {
	path, err := pathOf(p.TextDocument.URI)
	if err != nil {
		return nil // such as a buffer without a name: nothing can be said of it
	}
	if s.documents[path] == nil && len(s.documents) >= maxDocuments {
		return fmt.Errorf("more than %d documents are open", maxDocuments)
	}
	d := &document{uri: p.TextDocument.URI, path: path, version: p.TextDocument.Version}
	if old := s.documents[path]; old != nil {
		d.folder, d.inTree = old.folder, old.inTree
	} else {
		d.folder, d.inTree = s.folderOf(path)
	}
	s.documents[path] = d
	return s.changed(d, d.edit(contentChange{Text: p.TextDocument.Text}))
}

func (s *Server) didChange(p didChangeParams) error {
	d, err := s.open(p.TextDocument.URI)
	if errors.Is(err, errNoFile) {
		return nil // as it was opened
	} else if err != nil {
		return err
	}
	var wrong error
	for _, c := range p.ContentChanges {
		if err := d.edit(c); err != nil {
			wrong = err
		}
	}
	d.version = p.TextDocument.Version
	return s.changed(d, wrong)
}

// edit makes an edit. After one that cannot be made the text is lost, until it comes as a whole.
func (d *document) edit(c contentChange) (err error) {
	var next *text.Text
	switch {
	case c.Range == nil:
		next = text.New(c.Text)
	case d.lost:
		return nil
	default:
		next, err = d.text.Replace(*c.Range, c.Text)
	}
	if err == nil && len(next.String()) > maxDocument {
		err = fmt.Errorf("it has more than %d MiB", maxDocument>>20)
	}
	if err != nil {
		d.lose()
		return err
	}
	d.text, d.lost = next, false
	return nil
}

// loseAll makes all documents unknown: a message could not be read, which may have been an edit of any of them.
func (s *Server) loseAll(why string) {
	for _, d := range s.documents {
		if !d.lost {
			d.lose()
			s.tell(messageError, s.changed(d, errors.New(why)).Error())
		}
	}
}

// lose forgets the text, which nobody knows until it comes as a whole.
func (d *document) lose() { d.lost, d.text, d.parsed = true, text.New(""), nil }

func (s *Server) didClose(p documentParams) error {
	d, err := s.open(p.TextDocument.URI)
	if errors.Is(err, errNoFile) {
		return nil
	} else if err != nil {
		return err
	}
	delete(s.documents, d.path)
	if d.folder == nil {
		s.publish(d.uri, nil, nil)
		return nil
	}
	if len(s.folders) > maxFolders && !s.inUse(d.folder) {
		d.folder.forget()
		return nil
	}
	d.folder.diskChanged() // the file on the disk counts again
	return nil
}

// inUse says whether a file of a tree is open.
func (s *Server) inUse(f *folder) bool {
	for _, d := range s.documents {
		if d.folder == f {
			return true
		}
	}
	return false
}

// diskChanged has the trees of these files looked at again.
func (s *Server) diskChanged(files ...documentID) error {
	for _, d := range s.documents {
		if d.folder == nil { // its tree may have come
			d.folder, d.inTree = s.folderOf(d.path)
		}
	}
	for _, f := range s.folders {
		if slices.ContainsFunc(files, f.concerns) {
			f.diskChanged()
		}
	}
	return nil
}

func (s *Server) open(uri string) (*document, error) {
	path, err := pathOf(uri)
	if err != nil {
		return nil, err
	}
	d := s.documents[path]
	if d == nil {
		return nil, invalid("%s is not open", path)
	}
	return d, nil
}

// at returns an open document whose text is known, and an offset in it.
func (s *Server) at(p positionParams) (*document, int, error) {
	d, err := s.known(p.TextDocument.URI)
	if err != nil {
		return nil, 0, err
	}
	offset, err := d.text.Offset(p.Position)
	if err != nil {
		return nil, 0, invalid("%v", err)
	}
	return d, offset, nil
}

// known returns an open document whose text is known.
func (s *Server) known(uri string) (*document, error) {
	d, err := s.open(uri)
	if err == nil && d.lost {
		err = fmt.Errorf("the text of %s is not known any more: close and open it", d.path)
	}
	return d, err
}

// changed tells at once what a document says by itself, and has its tree looked at. wrong is why its text is lost; nil
// when it was lost before.
func (s *Server) changed(d *document, wrong error) error {
	if d.lost {
		s.show(d, nil)
		if wrong == nil {
			return nil
		}
		if d.folder != nil {
			d.folder.diskChanged() // the file on the disk counts again
		}
		return fmt.Errorf("%s is passed over until it comes as a whole: %w", d.path, wrong)
	}
	if d.starlark() {
		name := d.inTree
		if d.folder == nil {
			name = filepath.Base(d.path)
		}
		file, found := check.File(name, d.text.Bytes())
		if file != nil {
			d.parsed = &parsedText{d.text, file}
		}
		if len(found) > 0 || d.folder == nil {
			s.show(d, diagnosticsOf(d.text, found))
		}
	}
	if d.folder != nil {
		d.folder.changed()
	}
	return nil
}

// show has the client show these diagnostics of a document.
func (s *Server) show(d *document, found []diagnostic) {
	if d.folder == nil {
		s.publish(d.uri, &d.version, found)
		return
	}
	d.folder.show(d.inTree, found)
}

package script

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/starling-operator/starling/runtime/message"
)

// stdPrefix begins the paths of the standard library, in load statements and in
// positions.
const stdPrefix = "@std//"

// labelError says what is wrong with the label of a load statement. It becomes
// an [Error] at that statement.
type labelError struct{ msg, hint string }

func (e *labelError) Error() string { return e.msg }

// resolveLabel returns the path of the file that label names in a load
// statement of the file from: "web/lib/x.star" or "@std//x.star".
func resolveLabel(label, from string) (string, error) {
	bad := func(msg, hint string) (string, error) {
		return "", &labelError{fmt.Sprintf("cannot load %q: %s", label, msg), hint}
	}
	const forms = `write "./x.star", "//x.star" or "@std//x.star"`
	std, fromStd := "", strings.HasPrefix(from, stdPrefix)
	var p string
	switch {
	case strings.ContainsAny(label, "\x00\\\n\r"):
		return bad("it holds a character that no path may hold", forms)
	case strings.HasPrefix(label, stdPrefix):
		std, p = stdPrefix, label[len(stdPrefix):]
	case strings.HasPrefix(label, "//"):
		if fromStd {
			return bad("the standard library loads nothing of the module tree", "")
		}
		p = label[len("//"):]
	case strings.HasPrefix(label, "./"), strings.HasPrefix(label, "../"):
		base := from
		if fromStd {
			std, base = stdPrefix, from[len(stdPrefix):]
		}
		p = path.Join(path.Dir(base), label)
	case strings.HasPrefix(label, "@"):
		if rest, ok := strings.CutPrefix(label, "@std/"); ok {
			return bad("the only library is @std", fmt.Sprintf("did you mean %q?", stdPrefix+rest))
		}
		return bad("the only library is @std", forms)
	case strings.HasPrefix(label, "/"):
		return bad("paths begin at the module tree's root", fmt.Sprintf("did you mean %q?", "/"+label))
	case strings.HasSuffix(label, ".star"):
		return "", &labelError{fmt.Sprintf("cannot load %q: %s", label, noBeginning), fmt.Sprintf(`did you mean "./%s" or "//%s"?`, label, label)}
	default:
		return bad("this is no path of a file", forms)
	}
	p = path.Clean(p)
	switch {
	case p == ".." || strings.HasPrefix(p, "../"):
		return bad("it leaves the module tree", "")
	case !strings.HasSuffix(p, ".star"):
		return bad("only .star files can be loaded", "")
	case strings.HasSuffix(p, "_test.star"):
		return bad("tests are not loaded", "move what is shared to a file in lib/")
	case !fs.ValidPath(p):
		return bad("this is no path of a file", forms)
	}
	return std + p, nil
}

const noBeginning = "the path has no beginning"

// begun names the one file that a label without a beginning may mean, where there is one: beside the file from, in the
// tree, or in the standard library.
func (h *Host) begun(err error, label, from string) error {
	var bad *labelError
	if !errors.As(err, &bad) || !strings.HasSuffix(bad.msg, noBeginning) {
		return err
	}
	for _, prefix := range []string{"./", "//", stdPrefix} {
		p, wrong := resolveLabel(prefix+label, from)
		if wrong != nil {
			continue
		}
		if fsys, name, _ := h.fileSystem(p); fsys != nil {
			if _, absent := fs.Stat(fsys, name); absent == nil {
				return &labelError{bad.msg, fmt.Sprintf("did you mean %q?", prefix+label)}
			}
		}
	}
	return err
}

// missing describes a file that is not there, with the file that was meant when
// one is close: the same name in another folder, or a similar name beside it.
func (h *Host) missing(label, p string) error {
	e := &labelError{msg: fmt.Sprintf("cannot load %q: no file %s", label, p)}
	fsys, name, prefix := h.fileSystem(p)
	if fsys == nil {
		return e
	}
	const enough = 10_000
	var all, sameName []string
	// A folder that cannot be listed gives no suggestion; nothing else is lost.
	_ = fs.WalkDir(fsys, ".", func(f string, d fs.DirEntry, err error) error {
		if err != nil || len(all) >= enough {
			return fs.SkipDir
		}
		if d.Type().IsRegular() && strings.HasSuffix(f, ".star") && !strings.HasSuffix(f, "_test.star") {
			all = append(all, f)
			if path.Base(f) == path.Base(name) {
				sameName = append(sameName, f)
			}
		}
		return nil
	})
	found := message.Nearest(name, all)
	if found == "" && len(sameName) > 0 {
		found = slices.Min(sameName)
	}
	if found != "" {
		if prefix == "" {
			prefix = "//"
		}
		e.hint = fmt.Sprintf("did you mean %q?", prefix+found)
	}
	return e
}

// fileSystem returns the file system that holds path p, p's name in it, and the
// prefix of paths of that file system.
func (h *Host) fileSystem(p string) (fsys fs.FS, name, prefix string) {
	if name, ok := strings.CutPrefix(p, stdPrefix); ok {
		return h.std, name, stdPrefix
	}
	return h.files, p, ""
}

package simulation

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/starling-operator/starling/runtime/testrunner"
)

// junitReport is what --junit writes: a testsuite per file, as Jenkins and GitLab read it.
type junitReport struct {
	XMLName  xml.Name    `xml:"testsuites"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Time     string      `xml:"time,attr"`
	Suites   []junitFile `xml:"testsuite"`
}

type junitFile struct {
	Name     string      `xml:"name,attr"`
	File     string      `xml:"file,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Time     string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	File    string        `xml:"file,attr"`
	Time    string        `xml:"time,attr"`
	Failure *junitFailure `xml:"failure"`
	Error   *junitFailure `xml:"error"`
	Log     string        `xml:"system-out,omitempty"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// seconds writes a time as JUnit has it.
func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }

// add takes the results of one file.
func (r *junitReport) add(path string, f testrunner.File) {
	class := strings.ReplaceAll(strings.TrimSuffix(path, ".star"), "/", ".")
	of := junitFile{Name: path, File: path, Time: seconds(f.Took)}
	if f.Err != nil {
		of.Errors++
		of.Cases = append(of.Cases, junitCase{Name: "load", Class: class, File: path, Time: "0.000", Error: failureOf(f.Err)})
	}
	for _, t := range f.Tests {
		c := junitCase{Name: t.Name, Class: class, File: path, Time: seconds(t.Took)}
		if t.Err != nil {
			of.Failures++
			c.Failure, c.Log = failureOf(t.Err), printable(strings.Join(t.Log, "\n"))
		}
		of.Cases = append(of.Cases, c)
	}
	r.addFile(of)
}

// broken takes a module that does not load.
func (r *junitReport) broken(path string, err error) {
	r.addFile(junitFile{Name: path, File: path, Errors: 1, Time: "0.000", Cases: []junitCase{
		{Name: "load", Class: strings.ReplaceAll(path, "/", "."), File: path, Time: "0.000", Error: failureOf(err)},
	}})
}

func (r *junitReport) addFile(s junitFile) {
	s.Tests = len(s.Cases)
	r.Tests += s.Tests
	r.Failures += s.Failures
	r.Errors += s.Errors
	r.Suites = append(r.Suites, s)
}

func failureOf(err error) *junitFailure {
	return &junitFailure{Message: printable(err.Error()), Text: printable(render(err))}
}

// printable is a text without what XML cannot hold.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0xFFFE || r == 0xFFFF {
			return '\uFFFD'
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

// write writes the report; took is the time of all tests.
func (r *junitReport) write(w io.Writer, took time.Duration) error {
	r.Time = seconds(took)
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(r); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// reportFiles are the files that --junit, --cover-html and --cover-lcov name. They are made before the tests, so that a
// wrong name is said at once.
type reportFiles struct{ page, lcov, junit *os.File }

func (f *testFlags) reports() (files reportFiles, err error) {
	for _, r := range []struct {
		flag, name string
		to         **os.File
	}{{"cover-html", f.page, &files.page}, {"cover-lcov", f.lcov, &files.lcov}, {"junit", f.junit, &files.junit}} {
		if r.name == "" {
			continue
		}
		if *r.to, err = os.Create(r.name); err != nil {
			files.close()
			return files, fmt.Errorf("--%s: %w", r.flag, err)
		}
	}
	return files, nil
}

func (r reportFiles) close() {
	for _, f := range []*os.File{r.page, r.lcov, r.junit} {
		if f != nil {
			f.Close()
		}
	}
}

// covers says whether the files need coverage.
func (r reportFiles) covers() bool { return r.page != nil || r.lcov != nil }

// write fills the files.
func (r reportFiles) write(coverage *testrunner.Coverage, junit *junitReport, took time.Duration) error {
	for _, one := range []struct {
		flag string
		to   *os.File
		fill func(io.Writer) error
	}{
		{"cover-html", r.page, coverage.WritePage}, {"cover-lcov", r.lcov, coverage.WriteLCOV},
		{"junit", r.junit, func(w io.Writer) error { return junit.write(w, took) }},
	} {
		if one.to == nil {
			continue
		}
		if err := errors.Join(one.fill(one.to), one.to.Close()); err != nil {
			return fmt.Errorf("--%s: %w", one.flag, err)
		}
	}
	return nil
}

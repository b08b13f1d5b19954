package rbac

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/starling-operator/starling/runtime/message"
)

// Write prints the roles, and their bindings to the instance's ServiceAccount, as YAML
// that kubectl applies. The same result gives the same text.
func (r Result) Write(w io.Writer) error {
	p := &printer{result: r}
	p.line("# Rights of instance %s/%s of Starling, as `starling rbac` prints it.", r.Namespace, r.Name)
	p.line("# Modules: %s.", strings.Join(r.Modules, ", "))
	if !r.ServiceAccount {
		p.wrapped("ServiceAccount that must be there first: " + r.Name + " (--service-account prints it, too).")
	}
	if len(r.Namespaces) > 0 {
		p.wrapped("Namespaces that must be there first: " + strings.Join(r.Namespaces, " ") + ".")
	}
	for _, note := range r.Notes {
		p.wrapped("Not known here: " + note + ".")
	}
	if r.ServiceAccount {
		p.serviceAccount()
	}
	for _, role := range r.Roles {
		p.role(role)
	}
	_, err := w.Write(p.out.Bytes())
	return err
}

// WriteValues prints the rights of the modules as values of the chart in deploy/chart, which
// gives Starling itself its rights. The same result gives the same text.
func (r Result) WriteValues(w io.Writer) error {
	p := &printer{result: r}
	p.line("# Rights of the modules of instance %s/%s of Starling, as `starling rbac -o values` prints it.", r.Namespace, r.Name)
	p.line("# Modules: %s.", strings.Join(r.Modules, ", "))
	for _, note := range r.Notes {
		p.wrapped("Not known here: " + note + ".")
	}
	cluster, namespaced := r.ofModules()
	p.line("rbac:")
	if len(cluster) == 0 {
		p.line("  cluster: []")
	} else {
		p.line("  cluster:")
		p.rules("  ", cluster)
	}
	if len(namespaced) == 0 {
		p.line("  namespaces: []")
	} else {
		p.line("  namespaces:")
	}
	for _, role := range namespaced {
		p.line("  - name: %s", scalar(role.Namespace))
		if slices.Contains(r.Namespaces, role.Namespace) {
			p.line("    # Made by the chart, and left when the chart goes; false: it is there.")
			p.line("    create: true")
		}
		p.line("    rules:")
		p.rules("    ", role.Rules)
	}
	_, err := w.Write(p.out.Bytes())
	return err
}

// ofModules are the rules for the whole cluster, and the roles in namespaces, without
// Starling's own.
func (r Result) ofModules() (cluster []Rule, namespaced []Role) {
	for _, role := range r.Roles {
		switch {
		case role.Namespace == "":
			cluster = role.Rules
		case role.Namespace != r.Namespace || role.Name != r.Name:
			namespaced = append(namespaced, role)
		}
	}
	return cluster, namespaced
}

type printer struct {
	out    bytes.Buffer
	result Result
}

func (p *printer) line(format string, args ...any) { fmt.Fprintf(&p.out, format+"\n", args...) }

// wrapped prints a comment in lines of about 100 characters.
func (p *printer) wrapped(text string) {
	at := "#"
	for _, word := range strings.Fields(plain(text)) {
		if len(at)+len(word) > 100 {
			p.line("%s", at)
			at = "#  " // the next line of the same remark
		}
		at += " " + word
	}
	p.line("%s", at)
}

func (p *printer) serviceAccount() {
	p.line("---")
	p.line("# It has the rights below.")
	p.line("apiVersion: v1")
	p.line("kind: ServiceAccount")
	p.metadata(p.result.Name, p.result.Namespace)
}

func (p *printer) role(role Role) {
	kind := "Role"
	if role.Namespace == "" {
		kind = "ClusterRole"
	}
	p.line("---")
	p.wrapped(role.About)
	p.head(kind, role)
	p.line("rules:")
	p.rules("", role.Rules)
	p.line("---")
	p.head(kind+"Binding", role)
	p.line("roleRef:")
	p.line("  apiGroup: %s", rbacGroup)
	p.line("  kind: %s", kind)
	p.line("  name: %s", scalar(role.Name))
	p.line("subjects:")
	p.line("- kind: ServiceAccount")
	p.line("  name: %s", scalar(p.result.Name))
	p.line("  namespace: %s", scalar(p.result.Namespace))
}

// rules prints a list of rules, each line after the indent.
func (p *printer) rules(indent string, rules []Rule) {
	for _, r := range rules {
		p.line("%s# %s", indent, plain(strings.Join(short(r.Why), "; ")))
		if r.URL != "" {
			p.line("%s- nonResourceURLs: [%s]", indent, scalar(r.URL))
		} else {
			p.line("%s- apiGroups: [%s]", indent, scalar(r.Group))
			p.line("%s  resources: [%s]", indent, scalar(r.Resource))
		}
		if r.Names != nil {
			p.line("%s  resourceNames: [%s]", indent, scalars(r.Names))
		}
		p.line("%s  verbs: [%s]", indent, scalars(r.Verbs))
	}
}

func (p *printer) head(kind string, role Role) {
	p.line("apiVersion: %s/v1", rbacGroup)
	p.line("kind: %s", kind)
	p.metadata(role.Name, role.Namespace)
}

func (p *printer) metadata(name, namespace string) {
	p.line("metadata:")
	p.line("  name: %s", scalar(name))
	if namespace != "" {
		p.line("  namespace: %s", scalar(namespace))
	}
	p.line("  labels:")
	p.line("    app.kubernetes.io/name: starling")
}

// plain makes one line of a text, which may hold names that charts make up: what would
// end a comment could add rights.
func plain(text string) string { return message.Clean(strings.ToValidUTF8(text, " ")) }

// short leaves out what no reader reads.
func short(why []string) []string {
	const most = 4
	if len(why) <= most {
		return why
	}
	return append(slices.Clone(why[:most]), fmt.Sprintf("and %d more", len(why)-most))
}

var plainScalar = regexp.MustCompile(`^[a-z][a-z0-9./-]*$`)

// scalar writes a text so that YAML reads a text.
func scalar(s string) string {
	if plainScalar.MatchString(s) && !slices.Contains([]string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}, s) {
		return s
	}
	return strconv.Quote(s)
}

func scalars(list []string) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = scalar(s)
	}
	return strings.Join(out, ", ")
}

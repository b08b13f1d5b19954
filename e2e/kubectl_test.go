package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/jsonpath"

	"github.com/starling-operator/starling/e2e/cluster"
)

// kubectl does what the kubectl of a page does: tests need none on the machine.
type kubectl struct {
	t       *testing.T
	ns      string
	deleted map[string]types.UID // by kind and name: what it has deleted
}

// kubectlNames are the resources that pages name, and what kubectl prints of them.
var kubectlNames = map[string]struct {
	resource schema.GroupVersionResource
	name     string
}{
	"application": {applications, "application.example.org"},
	"deployment":  {schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, "deployment.apps"},
	"service":     {schema.GroupVersionResource{Version: "v1", Resource: "services"}, "service"},
	"ingress":     {schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"}, "ingress.networking.k8s.io"},
}

// run returns what the command prints.
func (k kubectl) run(args []string) (string, error) {
	if args[0] == "apply" && args[1] == "-f" {
		text, err := os.ReadFile(filepath.Join("..", args[2]))
		if err != nil {
			return "", err
		}
		shared.Apply(k.t, strings.ReplaceAll(string(text), "namespace: default", "namespace: "+k.ns))
		return "application.example.org/blog created\n", nil
	}
	verb, kinds, name, flags := args[0], strings.Split(args[1], ","), args[2], args[3:]
	var out strings.Builder
	for _, kind := range kinds {
		of, known := kubectlNames[kind]
		if !known {
			return "", fmt.Errorf("nobody knows %q", kind)
		}
		client := shared.Dynamic.Resource(of.resource).Namespace(k.ns)
		switch verb {
		case "get":
			o, err := client.Get(k.t.Context(), name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) && slices.Contains(flags, "--ignore-not-found") {
				continue
			} else if err != nil {
				return "", err
			} else if o.GetUID() == k.deleted[kind+" "+name] {
				return "", fmt.Errorf("%s %s is the one that was deleted", kind, name)
			}
			path, is := strings.CutPrefix(flags[1], "jsonpath=")
			if !is {
				fmt.Fprintf(&out, "%s/%s\n", of.name, name)
				continue
			}
			j := jsonpath.New("page").AllowMissingKeys(true)
			if err := errors.Join(j.Parse(path), j.Execute(&out, o.Object)); err != nil {
				return "", err
			}
		case "delete":
			o, err := client.Get(k.t.Context(), name, metav1.GetOptions{})
			if err != nil {
				return "", err
			}
			k.deleted[kind+" "+name] = o.GetUID()
			if err := client.Delete(k.t.Context(), name, metav1.DeleteOptions{}); err != nil {
				return "", err
			}
			fmt.Fprintf(&out, "%s %q deleted\n", of.name, name)
			if kind != "application" { // which does not come back
				continue
			}
			cluster.Eventually(k.t, soon, kind+" "+name+" is gone", func() error {
				if _, err := client.Get(k.t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
					return fmt.Errorf("it is there: %v", err)
				}
				return nil
			})
		case "patch":
			body := flags[slices.Index(flags, "-p")+1]
			if _, err := client.Patch(k.t.Context(), name, types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: "kubectl"}); err != nil {
				return "", err
			}
			fmt.Fprintf(&out, "%s/%s patched\n", of.name, name)
		default:
			return "", fmt.Errorf("nobody knows %q", verb)
		}
	}
	return out.String(), nil
}

// session runs the commands of a page that stand in blocks "console", each until it prints what the
// page says.
func (k kubectl) session(page string) {
	k.t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		k.t.Fatal(err)
	}
	words := regexp.MustCompile(`(?:'[^']*'|[^\s'])+`)
	ran := 0
	for _, block := range regexp.MustCompile("(?ms)^```console\n(.*?)^```").FindAllSubmatch(text, -1) {
		for _, part := range bytes.Split(block[1], []byte("$ kubectl "))[1:] {
			line, want, _ := strings.Cut(string(part), "\n")
			args := words.FindAllString(line, -1)
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], "'", "")
			}
			began, done := time.Now(), ""
			cluster.Eventually(k.t, soon, "kubectl "+line, func() (err error) {
				if done == "" || args[0] == "get" {
					if done, err = k.run(args); err != nil {
						return err
					}
				}
				if done != want {
					return fmt.Errorf("it prints %q, and the page %q", done, want)
				}
				return nil
			})
			k.t.Logf("%s after %s: kubectl %s", page, time.Since(began).Round(time.Millisecond), line)
			ran++
		}
	}
	if ran == 0 {
		k.t.Errorf("%s has no commands", page)
	}
}

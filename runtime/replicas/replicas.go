// Package replicas finds the pods of an instance in a cluster, and connects to the admin API of the process in one
// of them: by a command in its container, which copies bytes between its stdin and stdout and the local socket. So
// the rights of the cluster say who may ask, and no process has a port for it.
package replicas

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/effect"
)

const (
	// RoleLabel is on the pods of a Deployment, and says which of them leads. The template of the Deployment has
	// the value [Standby].
	RoleLabel = "starling.dev/role"
	Leader    = "leader"
	Standby   = "standby"
)

// Command is that of the binary which copies bytes between its stdin and stdout and the admin socket.
const Command = "admin-socket"

// Pod is one with a process of the instance.
type Pod struct {
	Namespace, Name, Node string
	// Leads is what the label says, Ready what the kubelet does.
	Leads, Ready bool
	// Container is the one with Starling, Argv the command that connects to its socket.
	Container string
	Argv      []string
}

// Options say which instance is looked for.
type Options struct {
	Client *cluster.Client
	// Namespace and Name are those of the instance.
	Namespace, Name string
}

var pods = cluster.Mapping{GVR: corev1.SchemeGroupVersion.WithResource("pods"), Kind: "Pod", Namespaced: true}

// Find returns the pods of an instance that have not ended: the one that leads comes first, then those that are
// Ready. An error says what to look at when there is none.
func Find(ctx context.Context, o Options) ([]Pod, error) {
	c := collected{Options: o}
	_, err := o.Client.Each(ctx, pods, o.Namespace, metav1.ListOptions{LabelSelector: RoleLabel}, c.add)
	if err != nil {
		return nil, o.Client.Explain(err, "list", pods, o.Namespace)
	}
	return c.sorted()
}

// collected are the pods that have been seen.
type collected struct {
	Options
	found  []Pod
	others []string // instances that there are, too
}

// add takes one pod.
func (c *collected) add(obj map[string]any) error {
	var pod corev1.Pod
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj, &pod); err != nil {
		return fmt.Errorf("a pod cannot be read: %w", err)
	}
	p, of := read(&pod)
	switch {
	case of == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
	case of == c.Namespace+"/"+c.Name:
		c.found = append(c.found, p)
	case !slices.Contains(c.others, of):
		c.others = append(c.others, of)
	}
	return nil
}

// sorted are the pods of the instance.
func (c *collected) sorted() ([]Pod, error) {
	if len(c.found) == 0 {
		if len(c.others) > 0 {
			return nil, fmt.Errorf("no pod of starling %s/%s runs in namespace %s; there are those of %s; give --namespace and --name", c.Namespace, c.Name, c.Namespace, strings.Join(c.others, ", "))
		}
		return nil, fmt.Errorf("no pod of starling %s/%s is in namespace %s: none that has the label %s and runs `starling run`; give --namespace and --name", c.Namespace, c.Name, c.Namespace, RoleLabel)
	}
	slices.SortStableFunc(c.found, func(a, b Pod) int {
		return cmp.Or(first(a.Leads, b.Leads), first(a.Ready, b.Ready), strings.Compare(a.Name, b.Name))
	})
	return c.found, nil
}

func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// read returns what is known of a pod, and of which instance it is: "" when it runs no Starling.
func read(pod *corev1.Pod) (p Pod, instance string) {
	p = Pod{Namespace: pod.Namespace, Name: pod.Name, Node: pod.Spec.NodeName, Leads: pod.Labels[RoleLabel] == Leader}
	for _, c := range pod.Status.Conditions {
		p.Ready = p.Ready || c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		words := expanded(pod, c)
		run := slices.Index(words, "run")
		if run < 0 {
			continue
		}
		namespace, name := pod.Namespace, "starling"
		p.Container, p.Argv = c.Name, []string{"starling"}
		if run > 0 {
			p.Argv = slices.Clone(words[:run])
		}
		p.Argv = append(p.Argv, Command)
		for _, flag := range []struct {
			names []string
			into  *string
		}{{[]string{"--namespace", "-n"}, &namespace}, {[]string{"--name"}, &name}, {[]string{"--state-dir"}, new(string)}} {
			if value := valueOf(words[run+1:], flag.names); value != "" {
				*flag.into = value
				p.Argv = append(p.Argv, flag.names[0]+"="+value)
			}
		}
		return p, namespace + "/" + name
	}
	return p, ""
}

var variable = regexp.MustCompile(`\$\$|\$\([^()]*\)`)

// expanded is the command line of a container with the variables that Kubernetes puts in, as far as the pod says what
// they are.
func expanded(pod *corev1.Pod, c *corev1.Container) []string {
	known := map[string]string{}
	expand := func(text string) string {
		return variable.ReplaceAllStringFunc(text, func(found string) string {
			if found == "$$" {
				return "$"
			}
			if value, is := known[found[2:len(found)-1]]; is {
				return value
			}
			return found
		})
	}
	fields := map[string]string{"metadata.namespace": pod.Namespace, "metadata.name": pod.Name, "spec.nodeName": pod.Spec.NodeName}
	for _, env := range c.Env {
		switch from := env.ValueFrom; {
		case from == nil:
			known[env.Name] = expand(env.Value)
		case from.FieldRef != nil && fields[from.FieldRef.FieldPath] != "":
			known[env.Name] = fields[from.FieldRef.FieldPath]
		}
	}
	words := slices.Concat(c.Command, c.Args)
	for i := range words {
		words[i] = expand(words[i])
	}
	return words
}

// valueOf is the value of a flag among the words of a command line, the last one that it has.
func valueOf(words, names []string) (value string) {
	for i, word := range words {
		flag, is, joined := strings.Cut(word, "=")
		switch {
		case !slices.Contains(names, flag):
		case joined:
			value = is
		case i+1 < len(words):
			value = words[i+1]
		}
	}
	return value
}

// Dial connects to the admin socket of the process in a pod.
func (p Pod) Dial(ctx context.Context, client *cluster.Client) (net.Conn, error) {
	ref := effect.Ref{APIVersion: "v1", Kind: "Pod", Namespace: p.Namespace, Name: p.Name}
	return client.Tunnel(ctx, ref, p.Container, p.Argv)
}

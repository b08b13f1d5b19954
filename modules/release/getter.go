package release

import (
	"context"
	"io"
	"strings"
	"sync"
	"time"

	"helm.sh/helm/v3/pkg/kube"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/starling-operator/starling/modules/release/owned"
	"github.com/starling-operator/starling/runtime/apply"
)

// getter gives Helm its clients: each action's own transport, and the discovery
// and REST mapper that all releases share. Helm's own way reads discovery anew
// for each action, which is what makes many releases slow.
type getter struct {
	config    *rest.Config
	discovery discovery.CachedDiscoveryInterface
	mapper    meta.RESTMapper
	namespace string
}

// ToRESTConfig returns a copy: its users change it.
func (g *getter) ToRESTConfig() (*rest.Config, error) { return rest.CopyConfig(g.config), nil }

// ToDiscoveryClient returns the shared discovery.
func (g *getter) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	return g.discovery, nil
}

// ToRESTMapper returns the shared mapper.
func (g *getter) ToRESTMapper() (meta.RESTMapper, error) { return g.mapper, nil }

// ToRawKubeConfigLoader answers only for the namespace.
func (g *getter) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	return clientcmd.NewDefaultClientConfig(clientcmdapi.Config{}, &clientcmd.ConfigOverrides{
		Context: clientcmdapi.Context{Namespace: g.namespace},
	})
}

// client is Helm's client, with what it does needlessly or without a context
// replaced.
type client struct {
	*kube.Client
	// ref is the release.
	ref Ref
	// ctx ends with the action.
	ctx context.Context
	// objects and writer write the objects of the release.
	objects dynamic.Interface
	writer  apply.Writer
	// built is how large all manifests are that the action has read.
	built int64
	// reset forgets the shared discovery.
	reset func()
	// lifeless: nothing gets ready, see [Options].
	lifeless bool
	m        *Manager
	// others are the objects that were not deleted, for others have them.
	others sync.Map // *resource.Info → nothing
	// limit refuses objects that may not be made; nil refuses none.
	limit func(kube.ResourceList) error
	// releasedBy is the value of [effect.ReleasedByLabel] on objects as they are sent; "": they
	// get no label.
	releasedBy string
	// sent takes the objects of the release as the API server has answered; nil: nobody does.
	sent func(list kube.ResourceList)
	// ignore is what others have of objects that are there.
	ignore []owned.Ignore
	// tried is an object as upgrades had it that have failed after they may have written it; nil: none have.
	tried func(info *resource.Info, wrote time.Time) []map[string]any
}

// Create makes objects: those of a release, or those of its hooks.
func (c *client) Create(resources kube.ResourceList) (*kube.Result, error) {
	if err := c.prepare(resources); err != nil {
		return nil, err
	}
	list, wanted := ofRelease(resources)
	if len(list) == 0 {
		return c.Client.Create(resources)
	}
	err := c.each(list, func(i int) error {
		wanted[i].Object = Applied(wanted[i].Object)
		now, err := c.writer.Create(c.ctx, c.objects.Resource(list[i].Mapping.Resource).Namespace(list[i].Namespace), wanted[i])
		if err != nil {
			return err
		}
		return list[i].Refresh(now, true)
	})
	if err == nil && c.sent != nil {
		c.sent(list)
	}
	return &kube.Result{Created: list}, err
}

// UpdateThreeWayMerge is Update for objects that are taken over.
func (c *client) UpdateThreeWayMerge(original, target kube.ResourceList, _ bool) (*kube.Result, error) {
	if err := c.prepare(target); err != nil {
		return &kube.Result{}, err
	}
	list, _ := ofRelease(target)
	res, err := c.update(original, target)
	if err == nil && c.sent != nil && len(list) > 0 {
		c.sent(list)
	}
	return res, err
}

// prepare refuses what may not be made, and labels the rest.
func (c *client) prepare(list kube.ResourceList) error {
	if c.limit != nil {
		if err := c.limit(list); err != nil {
			return err
		}
	}
	if c.releasedBy != "" {
		_, objects := ofRelease(list)
		for _, u := range objects {
			label(u, c.releasedBy)
		}
	}
	return nil
}

// Update creates, applies and deletes objects. Helm takes an object that it cannot delete as deleted: before it says that
// the revision is deployed, such objects are noted down.
func (c *client) Update(original, target kube.ResourceList, force bool) (*kube.Result, error) {
	res, err := c.UpdateThreeWayMerge(original, target, force)
	if err != nil {
		return res, err
	}
	var left []object
	for _, info := range original.Difference(target) {
		if res.Deleted.Get(info) == nil {
			version, kind := info.Mapping.GroupVersionKind.ToAPIVersionAndKind()
			left = append(left, object{APIVersion: version, Kind: kind, Namespace: info.Namespace, Name: info.Name})
		}
	}
	if len(left) == 0 {
		return res, nil
	}
	return res, c.m.remember(c.ctx, c.ref, left)
}

// IsReachable asks nothing: the action has just read the release's Secrets.
func (c *client) IsReachable() error { return nil }

// Build reads objects from YAML, without client-side validation: kubectl's leaves
// that to the API server since servers know `fieldValidation`, but reads the
// OpenAPI documents for each build to find that out. The server's opinion of
// unknown fields reaches the log as its warnings.
//
// A kind that the shared mapper does not know may be younger than it: discovery
// is read anew, once.
func (c *client) Build(r io.Reader, _ bool) (kube.ResourceList, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	c.built += int64(len(text))
	list, err := c.Client.Build(strings.NewReader(string(text)), false)
	if err != nil && strings.Contains(err.Error(), noMatches) {
		c.reset()
		list, err = c.Client.Build(strings.NewReader(string(text)), false)
	}
	return list, err
}

// noMatches is how apimachinery begins its error about an unknown kind; kubectl
// wraps it in a way that errors.As does not see through.
const noMatches = "no matches for kind"

// WaitForDelete waits until the objects are gone.
func (c *client) WaitForDelete(resources kube.ResourceList, timeout time.Duration) error {
	if c.lifeless {
		return nil
	}
	resources = resources.Filter(func(info *resource.Info) bool { _, theirs := c.others.Load(info); return !theirs })
	c.waits()
	return c.until(func() error { return c.Client.WaitForDelete(resources, timeout) })
}

// until returns when wait does, or when the action ends. The rest of wait
// only reads, behind a fence that is shut, until its timeout.
func (c *client) until(wait func() error) error {
	done := make(chan error, 1)
	go func() { done <- wait() }()
	select {
	case err := <-done:
		return err
	case <-c.ctx.Done():
		return context.Cause(c.ctx)
	}
}

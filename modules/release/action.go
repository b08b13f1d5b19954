package release

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/kube"
	helmrelease "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/starling-operator/starling/runtime/lane"
	plain "github.com/starling-operator/starling/runtime/object"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/message"
)

// session is one Helm action on one release, behind its own fence.
type session struct {
	m     *Manager
	ref   Ref
	ctx   context.Context
	fence *fence
	cfg   *action.Configuration
	// keeper stores the chart itself where cfg's action works with a literal one.
	keeper *chartKeeper
	// revisions knows the uids of the Secrets that the action has written.
	revisions *revisionSecrets
	log       zerolog.Logger
	// mask keeps the target's secrets out of Helm's log.
	mask plain.Mask

	mu sync.Mutex
	// sent are the objects of the release as the API server has answered.
	sent kube.ResourceList
	// cause is the reason that Helm logged and left out of its error.
	cause string
	// warned holds the API server's warnings that were logged.
	warned map[string]bool
}

// open prepares an action; ctx bounds it.
func (m *Manager) open(ctx context.Context, ref Ref) (*session, error) {
	s := &session{
		m: m, ref: ref, ctx: ctx,
		fence:  newFence(m.base, keepStorage(ref)),
		log:    m.o.Log.With().Str("module", ref.Module).Str("release", ref.Name).Str("namespace", ref.Namespace).Logger(),
		warned: map[string]bool{},
	}
	config := &rest.Config{
		Host:        m.host,
		UserAgent:   m.o.Config.UserAgent,
		RateLimiter: m.limiter,
		QPS:         m.o.Config.QPS,
		Burst:       m.o.Config.Burst,
		Transport:   s.fence,
		// A simulated API server takes JSON alone.
		ContentConfig: rest.ContentConfig{
			ContentType: m.o.Config.ContentType, AcceptContentTypes: m.o.Config.AcceptContentTypes,
		},
		WarningHandlerWithContext: s,
	}
	get := &getter{config: config, discovery: m.o.Discovery, mapper: m.o.Mapper, namespace: ref.Namespace}
	kubeClient := kube.New(get)
	kubeClient.Namespace = ref.Namespace
	kubeClient.Log = s.debug
	core, err := corev1client.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	caps, err := m.capabilities()
	if err != nil {
		return nil, err
	}
	s.revisions = newRevisionSecrets(core.Secrets(ref.Namespace))
	store := driver.NewSecrets(s.revisions)
	store.Log = s.debug
	s.keeper = &chartKeeper{Driver: store}
	s.cfg = &action.Configuration{
		RESTClientGetter: get,
		KubeClient: &client{
			Client: kubeClient, m: m, ref: ref, ctx: ctx, objects: objects, writer: m.writer(s.warn), reset: m.ResetDiscovery, lifeless: m.o.Lifeless,
			tried: func(info *resource.Info, wrote time.Time) []map[string]any {
				return s.keeper.tries.of(info, wrote)
			},
		},
		Releases:     storage.Init(s.keeper),
		Capabilities: caps,
		Log:          s.debug,
	}
	s.cfg.Releases.Log = s.debug
	return s, nil
}

// limit has Helm send nothing that the target may not hold, leave to others what the target does, and label what it sends.
func (s *session) limit(t Target) {
	c := s.cfg.KubeClient.(*client)
	c.limit = func(list kube.ResourceList) error { return s.m.limitList(t, list) }
	c.ignore = t.Ignore
	if t.IgnoreDrift {
		return
	}
	c.releasedBy = s.m.o.Instance
	c.sent = func(list kube.ResourceList) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.sent = list
	}
}

// HandleWarningHeaderWithContext logs what the API server warns of, once an
// action: unknown fields, deprecated kinds.
func (s *session) HandleWarningHeaderWithContext(_ context.Context, code int, _ string, text string) {
	if code == 299 && text != "" {
		s.warn(text)
	}
}

func (s *session) warn(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.warned[text] {
		return
	}
	s.warned[text] = true
	s.log.Warn().Msg(text)
}

// logCauses are Helm's log lines that hold the reason of an error which Helm
// returns without it.
var logCauses = regexp.MustCompile(`^(?:uninstall: Failed to delete release|failed to record the release|warning: Failed to update release [^:]*): (?s:(.*))`)

// debug is Helm's log.
func (s *session) debug(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if found := logCauses.FindStringSubmatch(text); found != nil {
		s.mu.Lock()
		s.cause = line(s.mask.Text(found[1]))
		s.mu.Unlock()
	}
	if e := s.log.Debug(); e.Enabled() {
		e.Msg("helm: " + line(s.mask.Text(text)))
	}
}

// line cuts a log line of Helm's to a length at which no manifest fits.
func line(text string) string { return message.Cut(message.Line(text), 300) }

// run carries out fn, a Helm action, and returns when it is over or when the
// session's context has ended and the action is cut off. onCut runs then, if the
// action did not end by itself in the time that it was given.
func (s *session) run(fn func() error, onCut func()) error {
	done := make(chan error, 1)
	go func() { done <- guard(fn) }()
	select {
	case err := <-done:
		s.fence.shut("the action is over")
		if err == nil {
			err = s.unrecorded()
		}
		return s.explain(err)
	case <-s.ctx.Done():
	}
	why := context.Cause(s.ctx)
	s.fence.narrow(why.Error())
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case err := <-done:
		s.fence.shut(why.Error())
		if err == nil { // the last step was under way
			return nil
		}
		if _, detail, ok := strings.Cut(s.explain(err).Error(), why.Error()+": "); ok {
			return &stopped{cause: why, detail: detail}
		}
	case <-timer.C:
		s.fence.shut(why.Error())
		onCut()
	}
	return &stopped{cause: why}
}

// unrecorded is the error that Helm only logs: all is done, and how it ended is not
// written down. The release would stay pending, and the next start begin it anew.
func (s *session) unrecorded() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cause == "" {
		return nil
	}
	return errors.New("the end of the action is not recorded: " + s.cause)
}

// stopped is an action that was cut off.
type stopped struct {
	cause  error
	detail string
}

// Error says why, and on what the action was waiting.
func (e *stopped) Error() string {
	if e.detail == "" {
		return e.cause.Error()
	}
	return e.cause.Error() + ": " + e.detail
}

// Unwrap gives the cause.
func (e *stopped) Unwrap() error { return e.cause }

// guard turns a panic of Helm's, which broken release Secrets and charts can
// bring about, into an error.
func guard(fn func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("helm gave up: %v", r)
		}
	}()
	return fn()
}

// explain makes Helm's error readable and adds what Helm only logged.
func (s *session) explain(err error) error {
	if err == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	text := s.mask.Text(err.Error()) // before it is cut: a part of a secret is not known
	if s.cause != "" && !strings.Contains(text, s.cause) {
		text += ": " + s.cause
	}
	text = s.m.servedInstead(text)
	err = errors.New(tidy(text))
	if noKind.MatchString(text) {
		err = &lane.Awaits{Err: err, For: lane.AwaitsKind}
	}
	return err
}

// labels is what the release carries.
func (s *session) labels(w want) map[string]string {
	return map[string]string{
		effect.InstanceLabel: w.Instance,
		effect.ModuleLabel:   w.Module,
		LabelInputs:          w.inputsLabel(),
		LabelManifest:        w.Manifest,
		LabelChart:           w.Chart,
	}
}

// install makes the first revision; replace makes it the next one of a history
// that was kept.
func (s *session) install(t Target, ch *chart.Chart, values map[string]any, w want, replace bool) (int, error) {
	var rel *helmrelease.Release
	err := s.run(func() (err error) {
		act := action.NewInstall(s.cfg)
		act.ReleaseName, act.Namespace = t.Name, t.Namespace
		act.Labels = s.labels(w)
		act.Replace = replace
		act.SkipCRDs = true             // applied by ApplyCRDs
		act.SkipSchemaValidation = true // done by render
		act.DisableOpenAPIValidation = true
		act.Wait, act.Timeout, act.TakeOwnership = t.Wait, t.Timeout, t.Adopt
		rel, err = act.Run(ch, values)
		return err
	}, s.markFailed)
	if err != nil {
		return 0, err
	}
	return rel.Version, nil
}

// upgrade makes the next revision.
func (s *session) upgrade(t Target, ch *chart.Chart, values map[string]any, w want) (int, error) {
	var rel *helmrelease.Release
	err := s.run(func() (err error) {
		act := action.NewUpgrade(s.cfg)
		act.Namespace = t.Namespace
		act.Labels = s.labels(w)
		act.ResetValues = true // else Helm fills empty values from the last revision
		act.SkipCRDs = true
		act.SkipSchemaValidation = true
		act.DisableOpenAPIValidation = true
		act.MaxHistory = s.m.o.History
		act.Wait, act.Timeout, act.TakeOwnership = t.Wait, t.Timeout, t.Adopt
		rel, err = act.Run(t.Name, ch, values)
		return err
	}, s.markFailed)
	if err != nil {
		return 0, err
	}
	return rel.Version, nil
}

// uninstall removes the release and its history. An uninstall that is cut off
// stays "uninstalling" and is begun again.
func (s *session) uninstall(wait, hookless bool, timeout time.Duration) error {
	return s.run(func() error {
		act := action.NewUninstall(s.cfg)
		act.Wait, act.DisableHooks, act.Timeout = wait, hookless, timeout
		// Not with IgnoreNotFound: Helm then takes every error of reading the
		// release for one that is not there.
		if _, err := act.Run(s.ref.Name); !errors.Is(err, driver.ErrReleaseNotFound) {
			return err
		}
		return nil
	}, func() {})
}

// markFailed notes that the newest revision failed, if it is pending still. It
// goes past the fence, which is shut.
func (s *session) markFailed() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), grace)
	defer cancel()
	if err := s.m.recover(ctx, s.ref, "stopped: "+context.Cause(s.ctx).Error()); err != nil {
		s.log.Warn().Err(err).Msg("the release stays pending; the next start takes it over")
	}
}

// validateName refuses what Helm or a label could not hold.
func validateName(ref Ref) error {
	if len(ref.Name) > 53 {
		return fmt.Errorf("release name %q has %d characters; helm allows 53", ref.Name, len(ref.Name))
	}
	if err := chartutil.ValidateReleaseName(ref.Name); err != nil {
		return fmt.Errorf("release name %q: use lower case letters, digits, '-' and '.'", ref.Name)
	}
	if ref.Namespace == "" {
		return fmt.Errorf("release %s has no namespace", ref.Name)
	}
	return nil
}

package store

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// defaultPod sets what Pods have beyond pod templates.
func defaultPod(o *corev1.Pod) {
	spec := &o.Spec
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			fill(&list[i].Resources.Requests, list[i].Resources.Limits)
		}
	}
	unset(&spec.EnableServiceLinks, corev1.DefaultEnableServiceLinks)
	unless(&o.Status.Phase, corev1.PodPending)
	defaultPodSpec(spec)
}

func defaultPodSpec(spec *corev1.PodSpec) {
	unless(&spec.ServiceAccountName, spec.DeprecatedServiceAccount)
	spec.DeprecatedServiceAccount = spec.ServiceAccountName
	unless(&spec.DNSPolicy, corev1.DNSClusterFirst)
	unless(&spec.RestartPolicy, corev1.RestartPolicyAlways)
	unset(&spec.SecurityContext, corev1.PodSecurityContext{})
	unset(&spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
	unless(&spec.SchedulerName, corev1.DefaultSchedulerName)
	for i := range spec.Volumes {
		defaultVolume(&spec.Volumes[i])
	}
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			defaultContainer(&list[i], spec.HostNetwork)
		}
	}
}

func defaultContainer(c *corev1.Container, hostNetwork bool) {
	policy := corev1.PullIfNotPresent
	if tag := tagOf(c.Image); tag == "latest" {
		policy = corev1.PullAlways
	}
	unless(&c.ImagePullPolicy, policy)
	unless(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	unless(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	for i := range c.Ports {
		unless(&c.Ports[i].Protocol, corev1.ProtocolTCP)
		if hostNetwork {
			unless(&c.Ports[i].HostPort, c.Ports[i].ContainerPort)
		}
	}
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil && from.FieldRef != nil {
			unless(&from.FieldRef.APIVersion, "v1")
		}
	}
	for _, p := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		if p != nil {
			defaultProbe(p)
		}
	}
	if c.Lifecycle != nil {
		for _, h := range []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
			if h != nil {
				defaultGet(h.HTTPGet)
			}
		}
	}
}

func defaultProbe(p *corev1.Probe) {
	unless(&p.TimeoutSeconds, 1)
	unless(&p.PeriodSeconds, 10)
	unless(&p.SuccessThreshold, 1)
	unless(&p.FailureThreshold, 3)
	defaultGet(p.HTTPGet)
	if p.GRPC != nil {
		unset(&p.GRPC.Service, "")
	}
}

func defaultGet(get *corev1.HTTPGetAction) {
	if get != nil {
		unless(&get.Path, "/")
		unless(&get.Scheme, corev1.URISchemeHTTP)
	}
}

func defaultVolume(v *corev1.Volume) {
	if v.VolumeSource == (corev1.VolumeSource{}) {
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	const mode = 0o644
	switch {
	case v.Secret != nil:
		unset(&v.Secret.DefaultMode, mode)
	case v.ConfigMap != nil:
		unset(&v.ConfigMap.DefaultMode, mode)
	case v.DownwardAPI != nil:
		unset(&v.DownwardAPI.DefaultMode, mode)
		defaultFiles(v.DownwardAPI.Items)
	case v.HostPath != nil:
		unset(&v.HostPath.Type, corev1.HostPathUnset)
	case v.Projected != nil:
		unset(&v.Projected.DefaultMode, mode)
		for i := range v.Projected.Sources {
			if token := v.Projected.Sources[i].ServiceAccountToken; token != nil {
				unset(&token.ExpirationSeconds, 3600)
			}
			if api := v.Projected.Sources[i].DownwardAPI; api != nil {
				defaultFiles(api.Items)
			}
		}
	}
}

func defaultFiles(items []corev1.DownwardAPIVolumeFile) {
	for i := range items {
		if items[i].FieldRef != nil {
			unless(&items[i].FieldRef.APIVersion, "v1")
		}
	}
}

// tagOf returns the tag of an image's name; without tag and digest it is "latest".
func tagOf(image string) string {
	if strings.Contains(image, "@") {
		return ""
	}
	last := image[strings.LastIndex(image, "/")+1:]
	if _, tag, ok := strings.Cut(last, ":"); ok {
		return tag
	}
	return "latest"
}

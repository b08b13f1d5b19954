package store

import (
	"math"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// unless sets what p points to when nothing is set yet.
func unless[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

// unset sets *p to a pointer to v when it is nil.
func unset[T any](p **T, v T) {
	if *p == nil {
		*p = &v
	}
}

// setDefaults sets what the real server sets in an object of a built-in kind. The
// kinds that are not here have no defaults, or seldom matter to an addon.
func setDefaults(obj runtime.Object) {
	switch o := obj.(type) {
	case *corev1.Secret:
		unless(&o.Type, corev1.SecretTypeOpaque)
		for key, v := range o.StringData {
			if o.Data == nil {
				o.Data = map[string][]byte{}
			}
			o.Data[key] = []byte(v)
		}
		o.StringData = nil
	case *corev1.Namespace:
		if o.Name != "" {
			if o.Labels == nil {
				o.Labels = map[string]string{}
			}
			o.Labels[corev1.LabelMetadataName] = o.Name
		}
		unless(&o.Status.Phase, corev1.NamespaceActive)
	case *corev1.Service:
		defaultService(o)
	case *corev1.Pod:
		defaultPod(o)
	case *corev1.Node:
		if o.Status.Allocatable == nil {
			o.Status.Allocatable = o.Status.Capacity
		}
	case *corev1.LimitRange:
		defaultLimits(o.Spec.Limits)
	case *corev1.PodTemplate:
		defaultPodSpec(&o.Template.Spec)
	case *corev1.ReplicationController:
		unset(&o.Spec.Replicas, 1)
		if t := o.Spec.Template; t != nil {
			if len(o.Spec.Selector) == 0 {
				o.Spec.Selector = t.Labels
			}
			if len(o.Labels) == 0 {
				o.Labels = t.Labels
			}
			defaultPodSpec(&t.Spec)
		}
	case *corev1.PersistentVolume:
		unless(&o.Status.Phase, corev1.VolumePending)
		unless(&o.Spec.PersistentVolumeReclaimPolicy, corev1.PersistentVolumeReclaimRetain)
		unset(&o.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
		if o.Spec.HostPath != nil {
			unset(&o.Spec.HostPath.Type, corev1.HostPathUnset)
		}
	case *corev1.PersistentVolumeClaim:
		unless(&o.Status.Phase, corev1.ClaimPending)
		unset(&o.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	//lint:ignore SA1019 deprecated, and served all the same
	case *corev1.Endpoints:
		for i := range o.Subsets {
			for j := range o.Subsets[i].Ports {
				unless(&o.Subsets[i].Ports[j].Protocol, corev1.ProtocolTCP)
			}
		}
	case *discoveryv1.EndpointSlice:
		for i := range o.Ports {
			unset(&o.Ports[i].Name, "")
			unset(&o.Ports[i].Protocol, corev1.ProtocolTCP)
		}
	case *appsv1.Deployment, *appsv1.StatefulSet, *appsv1.DaemonSet, *appsv1.ReplicaSet:
		defaultWorkload(o)
	case *batchv1.Job:
		if len(o.Labels) == 0 {
			o.Labels = o.Spec.Template.Labels
		}
		defaultJob(&o.Spec)
		unset(&o.Spec.Suspend, false)
		unset(&o.Spec.ManualSelector, false)
	case *batchv1.CronJob:
		unless(&o.Spec.ConcurrencyPolicy, batchv1.AllowConcurrent)
		unset(&o.Spec.Suspend, false)
		unset(&o.Spec.SuccessfulJobsHistoryLimit, 3)
		unset(&o.Spec.FailedJobsHistoryLimit, 1)
		defaultPodSpec(&o.Spec.JobTemplate.Spec.Template.Spec)
	case *autoscalingv2.HorizontalPodAutoscaler:
		defaultAutoscaler(&o.Spec)
	case *rbacv1.RoleBinding:
		unless(&o.RoleRef.APIGroup, rbacv1.GroupName)
		defaultSubjects(o.Subjects)
	case *rbacv1.ClusterRoleBinding:
		unless(&o.RoleRef.APIGroup, rbacv1.GroupName)
		defaultSubjects(o.Subjects)
	case *networkingv1.NetworkPolicy:
		defaultNetworkPolicy(o)
	case *networkingv1.IngressClass:
		if o.Spec.Parameters != nil {
			unset(&o.Spec.Parameters.Scope, networkingv1.IngressClassParametersReferenceScopeCluster)
		}
	case *admissionv1.ValidatingWebhookConfiguration:
		for i := range o.Webhooks {
			w := &o.Webhooks[i]
			defaultWebhook(&w.FailurePolicy, &w.MatchPolicy, &w.NamespaceSelector, &w.ObjectSelector, &w.TimeoutSeconds, &w.ClientConfig, w.Rules)
		}
	case *admissionv1.MutatingWebhookConfiguration:
		for i := range o.Webhooks {
			w := &o.Webhooks[i]
			unset(&w.ReinvocationPolicy, admissionv1.NeverReinvocationPolicy)
			defaultWebhook(&w.FailurePolicy, &w.MatchPolicy, &w.NamespaceSelector, &w.ObjectSelector, &w.TimeoutSeconds, &w.ClientConfig, w.Rules)
		}
	case *storagev1.StorageClass:
		unset(&o.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete)
		unset(&o.VolumeBindingMode, storagev1.VolumeBindingImmediate)
	case *schedulingv1.PriorityClass:
		unset(&o.PreemptionPolicy, corev1.PreemptLowerPriority)
	case *apiextensionsv1.CustomResourceDefinition:
		defaultCRD(o)
	case *apiregistrationv1.APIService:
		if o.Spec.Service != nil {
			unset(&o.Spec.Service.Port, 443)
		}
	case *autoscalingv1.HorizontalPodAutoscaler:
		unset(&o.Spec.MinReplicas, 1)
		if o.Annotations[metricsNote] == "" {
			unset(&o.Spec.TargetCPUUtilizationPercentage, 80)
		}
	}
}

// fill puts what is missing of a list into it.
func fill(into *corev1.ResourceList, from corev1.ResourceList) {
	for name, n := range from {
		if _, there := (*into)[name]; there {
			continue
		}
		if *into == nil {
			*into = corev1.ResourceList{}
		}
		(*into)[name] = n.DeepCopy()
	}
}

// defaultLimits has limits be what is missing: the maximum of limits, and they, or the
// minimum, of requests.
func defaultLimits(limits []corev1.LimitRangeItem) {
	for i := range limits {
		if l := &limits[i]; l.Type == corev1.LimitTypeContainer {
			fill(&l.Default, l.Max)
			fill(&l.DefaultRequest, l.Default)
			fill(&l.DefaultRequest, l.Min)
		}
	}
}

func defaultService(o *corev1.Service) {
	spec := &o.Spec
	unless(&spec.SessionAffinity, corev1.ServiceAffinityNone)
	if spec.SessionAffinity == corev1.ServiceAffinityNone {
		spec.SessionAffinityConfig = nil
	} else if spec.SessionAffinityConfig == nil || spec.SessionAffinityConfig.ClientIP == nil || spec.SessionAffinityConfig.ClientIP.TimeoutSeconds == nil {
		timeout := corev1.DefaultClientIPServiceAffinitySeconds
		spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: &timeout}}
	}
	unless(&spec.Type, corev1.ServiceTypeClusterIP)
	for i := range spec.Ports {
		p := &spec.Ports[i]
		unless(&p.Protocol, corev1.ProtocolTCP)
		if p.TargetPort == intstr.FromInt32(0) || p.TargetPort == intstr.FromString("") {
			p.TargetPort = intstr.FromInt32(p.Port)
		}
	}
	if spec.Type == corev1.ServiceTypeNodePort || spec.Type == corev1.ServiceTypeLoadBalancer {
		unless(&spec.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster)
	}
	if spec.Type != corev1.ServiceTypeExternalName {
		unset(&spec.InternalTrafficPolicy, corev1.ServiceInternalTrafficPolicyCluster)
	}
	if spec.Type == corev1.ServiceTypeLoadBalancer {
		unset(&spec.AllocateLoadBalancerNodePorts, true)
	}
}

func defaultWorkload(obj runtime.Object) {
	switch o := obj.(type) {
	case *appsv1.Deployment:
		unset(&o.Spec.Replicas, 1)
		unless(&o.Spec.Strategy.Type, appsv1.RollingUpdateDeploymentStrategyType)
		if o.Spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
			unset(&o.Spec.Strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
			unset(&o.Spec.Strategy.RollingUpdate.MaxUnavailable, intstr.FromString("25%"))
			unset(&o.Spec.Strategy.RollingUpdate.MaxSurge, intstr.FromString("25%"))
		}
		unset(&o.Spec.RevisionHistoryLimit, 10)
		unset(&o.Spec.ProgressDeadlineSeconds, 600)
		defaultPodSpec(&o.Spec.Template.Spec)
	case *appsv1.StatefulSet:
		unless(&o.Spec.PodManagementPolicy, appsv1.OrderedReadyPodManagement)
		if o.Spec.UpdateStrategy.Type == "" {
			o.Spec.UpdateStrategy.Type = appsv1.RollingUpdateStatefulSetStrategyType
			unset(&o.Spec.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateStatefulSetStrategy{})
		}
		if u := o.Spec.UpdateStrategy; u.Type == appsv1.RollingUpdateStatefulSetStrategyType && u.RollingUpdate != nil {
			unset(&u.RollingUpdate.Partition, 0)
			unset(&u.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
		}
		unset(&o.Spec.PersistentVolumeClaimRetentionPolicy, appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{})
		unless(&o.Spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
		unless(&o.Spec.PersistentVolumeClaimRetentionPolicy.WhenScaled, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
		unset(&o.Spec.Replicas, 1)
		unset(&o.Spec.RevisionHistoryLimit, 10)
		defaultPodSpec(&o.Spec.Template.Spec)
		for i := range o.Spec.VolumeClaimTemplates {
			claim := &o.Spec.VolumeClaimTemplates[i]
			claim.APIVersion, claim.Kind = "v1", "PersistentVolumeClaim"
			setDefaults(claim)
		}
	case *appsv1.DaemonSet:
		unless(&o.Spec.UpdateStrategy.Type, appsv1.RollingUpdateDaemonSetStrategyType)
		if o.Spec.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType {
			unset(&o.Spec.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateDaemonSet{})
			unset(&o.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
			unset(&o.Spec.UpdateStrategy.RollingUpdate.MaxSurge, intstr.FromInt32(0))
		}
		unset(&o.Spec.RevisionHistoryLimit, 10)
		defaultPodSpec(&o.Spec.Template.Spec)
	case *appsv1.ReplicaSet:
		unset(&o.Spec.Replicas, 1)
		defaultPodSpec(&o.Spec.Template.Spec)
	}
}

func defaultJob(spec *batchv1.JobSpec) {
	if spec.Completions == nil && spec.Parallelism == nil {
		unset(&spec.Completions, 1)
	}
	unset(&spec.Parallelism, 1)
	if spec.BackoffLimitPerIndex != nil {
		unset(&spec.BackoffLimit, math.MaxInt32)
	}
	unset(&spec.BackoffLimit, 6)
	unset(&spec.CompletionMode, batchv1.NonIndexedCompletion)
	if spec.PodFailurePolicy != nil {
		unset(&spec.PodReplacementPolicy, batchv1.Failed)
	}
	unset(&spec.PodReplacementPolicy, batchv1.TerminatingOrFailed)
	defaultPodSpec(&spec.Template.Spec)
}

func defaultAutoscaler(spec *autoscalingv2.HorizontalPodAutoscalerSpec) {
	unset(&spec.MinReplicas, 1)
	if len(spec.Metrics) == 0 {
		spec.Metrics = []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
			Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(80))},
		}}}
	}
}

func defaultSubjects(subjects []rbacv1.Subject) {
	for i := range subjects {
		if subjects[i].Kind == rbacv1.UserKind || subjects[i].Kind == rbacv1.GroupKind {
			unless(&subjects[i].APIGroup, rbacv1.GroupName)
		}
	}
}

func defaultNetworkPolicy(o *networkingv1.NetworkPolicy) {
	if len(o.Spec.PolicyTypes) == 0 {
		o.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
		if len(o.Spec.Egress) > 0 {
			o.Spec.PolicyTypes = append(o.Spec.PolicyTypes, networkingv1.PolicyTypeEgress)
		}
	}
	ports := func(list []networkingv1.NetworkPolicyPort) {
		for i := range list {
			unset(&list[i].Protocol, corev1.ProtocolTCP)
		}
	}
	for _, rule := range o.Spec.Ingress {
		ports(rule.Ports)
	}
	for _, rule := range o.Spec.Egress {
		ports(rule.Ports)
	}
}

func defaultWebhook(failure **admissionv1.FailurePolicyType, match **admissionv1.MatchPolicyType, namespaces, objects **metav1.LabelSelector, timeout **int32, client *admissionv1.WebhookClientConfig, rules []admissionv1.RuleWithOperations) {
	unset(failure, admissionv1.Fail)
	unset(match, admissionv1.Equivalent)
	unset(namespaces, metav1.LabelSelector{})
	unset(objects, metav1.LabelSelector{})
	unset(timeout, 10)
	if client.Service != nil {
		unset(&client.Service.Port, 443)
	}
	for i := range rules {
		unset(&rules[i].Scope, admissionv1.AllScopes)
	}
}

func defaultCRD(o *apiextensionsv1.CustomResourceDefinition) {
	unless(&o.Spec.Names.Singular, strings.ToLower(o.Spec.Names.Kind))
	if o.Spec.Names.Kind != "" {
		unless(&o.Spec.Names.ListKind, o.Spec.Names.Kind+"List")
	}
	unset(&o.Spec.Conversion, apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter})
	if w := o.Spec.Conversion.Webhook; w != nil && w.ClientConfig != nil && w.ClientConfig.Service != nil {
		unset(&w.ClientConfig.Service.Port, 443)
	}
}

package workloads

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// sliceManager is the label's value by which EndpointSlices say who keeps them.
const sliceManager = "endpointslice-controller.k8s.io"

// endpointSlices keeps the EndpointSlices of each Service that selects Pods: one for all Pods
// with the same ports, and an empty one when there are none.
func endpointSlices(s *State) (out Result) {
	for _, service := range s.Services {
		if service.DeletionTimestamp != nil || len(service.Spec.Selector) == 0 || service.Spec.Type == corev1.ServiceTypeExternalName {
			continue
		}
		want := s.slicesOf(service)
		have := slices.DeleteFunc(controlledBy(s.Slices, service), func(one *discoveryv1.EndpointSlice) bool {
			return one.Labels[discoveryv1.LabelManagedBy] != sliceManager || one.DeletionTimestamp != nil
		})
		for i, one := range want {
			if i >= len(have) {
				out.create(one)
				continue
			}
			changed := have[i].DeepCopy()
			changed.Labels, changed.Endpoints, changed.Ports = one.Labels, one.Endpoints, one.Ports
			if !equality.Semantic.DeepEqual(changed, have[i]) {
				out.update(changed)
			}
		}
		for _, extra := range have[min(len(want), len(have)):] {
			out.delete(extra)
		}
	}
	return out
}

// slicesOf are the EndpointSlices that a Service should have.
func (s *State) slicesOf(service *corev1.Service) (out []*discoveryv1.EndpointSlice) {
	selector := labels.SelectorFromSet(service.Spec.Selector)
	for _, p := range s.Pods {
		if p.Namespace != service.Namespace || !selector.Matches(labels.Set(p.Labels)) || p.Status.PodIP == "" || finished(p) {
			continue
		}
		ports := portsOf(service, p)
		i := slices.IndexFunc(out, func(one *discoveryv1.EndpointSlice) bool { return equality.Semantic.DeepEqual(one.Ports, ports) })
		if i < 0 {
			i, out = len(out), append(out, emptySlice(service))
			out[i].Ports = ports
		}
		out[i].Endpoints = append(out[i].Endpoints, endpointOf(service, p))
	}
	if len(out) == 0 {
		return []*discoveryv1.EndpointSlice{emptySlice(service)}
	}
	return out
}

func emptySlice(service *corev1.Service) *discoveryv1.EndpointSlice {
	marks := with(service.Labels, discoveryv1.LabelServiceName, service.Name)
	marks[discoveryv1.LabelManagedBy] = sliceManager
	delete(marks, corev1.IsHeadlessService)
	if service.Spec.ClusterIP == corev1.ClusterIPNone {
		marks[corev1.IsHeadlessService] = ""
	}
	return &discoveryv1.EndpointSlice{
		TypeMeta: typeMeta(kindSlice),
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: service.Name + "-", Namespace: service.Namespace, Labels: marks,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(service, kindService)},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
}

func endpointOf(service *corev1.Service, p *corev1.Pod) discoveryv1.Endpoint {
	deleted := p.DeletionTimestamp != nil
	out := discoveryv1.Endpoint{
		Addresses: []string{p.Status.PodIP},
		Conditions: discoveryv1.EndpointConditions{
			Ready: new(service.Spec.PublishNotReadyAddresses || ready(p) && !deleted), Serving: new(ready(p)), Terminating: &deleted,
		},
		TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.UID},
	}
	if p.Spec.NodeName != "" {
		out.NodeName = new(p.Spec.NodeName)
	}
	if p.Spec.Hostname != "" && p.Spec.Subdomain == service.Name {
		out.Hostname = new(p.Spec.Hostname)
	}
	return out
}

// portsOf are the ports of a Service as a Pod has them, without those whose names none of its
// containers has.
func portsOf(service *corev1.Service, p *corev1.Pod) (out []discoveryv1.EndpointPort) {
	for i := range service.Spec.Ports {
		port := &service.Spec.Ports[i]
		protocol := cmp.Or(port.Protocol, corev1.ProtocolTCP)
		number := port.TargetPort.IntVal
		if port.TargetPort.Type == intstr.String {
			number = named(port.TargetPort.StrVal, protocol, p)
		} else if number == 0 {
			number = port.Port
		}
		if number != 0 {
			out = append(out, discoveryv1.EndpointPort{Name: new(port.Name), Protocol: &protocol, Port: &number, AppProtocol: port.AppProtocol})
		}
	}
	return out
}

// named is the number of a Pod's container port with a name, 0 for none.
func named(name string, protocol corev1.Protocol, p *corev1.Pod) int32 {
	for _, c := range p.Spec.Containers {
		for _, port := range c.Ports {
			if port.Name == name && cmp.Or(port.Protocol, corev1.ProtocolTCP) == protocol {
				return port.ContainerPort
			}
		}
	}
	return 0
}

package store

// builtinTable lists the kinds that every API server of our minor version serves
// (its discovery, read from bin/devcluster), a line each: group, version, plural,
// kind, N for namespaced or C for cluster-scoped, short names, categories, and
// letters: s has a status and c a scale subresource, g has a generation, v wants a
// resourceVersion in updates, p is created by an update of what is not there, r
// answers a delete with the object; objects of o are only created, which is a question
// that the answer comes back in, those of l only read.
const builtinTable = `
- v1 componentstatuses ComponentStatus C cs - l
- v1 configmaps ConfigMap N cm - -
- v1 endpoints Endpoints N ep - p
- v1 events Event N ev - p
- v1 limitranges LimitRange N limits - p
- v1 namespaces Namespace C ns - sr
- v1 nodes Node C no - s
- v1 persistentvolumeclaims PersistentVolumeClaim N pvc - sr
- v1 persistentvolumes PersistentVolume C pv - sr
- v1 pods Pod N po all sgr
- v1 podtemplates PodTemplate N - - gr
- v1 replicationcontrollers ReplicationController N rc all scg
- v1 resourcequotas ResourceQuota N quota - sr
- v1 secrets Secret N - - -
- v1 serviceaccounts ServiceAccount N sa - r
- v1 services Service N svc all spr
apiregistration.k8s.io v1 apiservices APIService C - api-extensions sv
events.k8s.io v1 events Event N ev - p
authentication.k8s.io v1 selfsubjectreviews SelfSubjectReview C - - o
authentication.k8s.io v1 tokenreviews TokenReview C - - o
authorization.k8s.io v1 localsubjectaccessreviews LocalSubjectAccessReview N - - o
authorization.k8s.io v1 selfsubjectaccessreviews SelfSubjectAccessReview C - - o
authorization.k8s.io v1 selfsubjectrulesreviews SelfSubjectRulesReview C - - o
authorization.k8s.io v1 subjectaccessreviews SubjectAccessReview C - - o
apps v1 controllerrevisions ControllerRevision N - - -
apps v1 daemonsets DaemonSet N ds all sg
apps v1 deployments Deployment N deploy all scg
apps v1 replicasets ReplicaSet N rs all scg
apps v1 statefulsets StatefulSet N sts all scg
autoscaling v1 horizontalpodautoscalers HorizontalPodAutoscaler N hpa all sg
autoscaling v2 horizontalpodautoscalers HorizontalPodAutoscaler N hpa all sg
batch v1 cronjobs CronJob N cj all sg
batch v1 jobs Job N - all sg
certificates.k8s.io v1 certificatesigningrequests CertificateSigningRequest C csr - s
certificates.k8s.io v1 clustertrustbundles ClusterTrustBundle C - - v
certificates.k8s.io v1 podcertificaterequests PodCertificateRequest N - - sv
networking.k8s.io v1 ingressclasses IngressClass C - - g
networking.k8s.io v1 ingresses Ingress N ing - sg
networking.k8s.io v1 ipaddresses IPAddress C ip - -
networking.k8s.io v1 networkpolicies NetworkPolicy N netpol - g
networking.k8s.io v1 servicecidrs ServiceCIDR C - - s
policy v1 poddisruptionbudgets PodDisruptionBudget N pdb - sgv
rbac.authorization.k8s.io v1 clusterrolebindings ClusterRoleBinding C - - p
rbac.authorization.k8s.io v1 clusterroles ClusterRole C - - p
rbac.authorization.k8s.io v1 rolebindings RoleBinding N - - p
rbac.authorization.k8s.io v1 roles Role N - - p
storage.k8s.io v1 csidrivers CSIDriver C - - vr
storage.k8s.io v1 csinodes CSINode C - - svr
storage.k8s.io v1 csistoragecapacities CSIStorageCapacity N - - v
storage.k8s.io v1 storageclasses StorageClass C sc - r
storage.k8s.io v1 volumeattachments VolumeAttachment C - - svr
storage.k8s.io v1 volumeattributesclasses VolumeAttributesClass C vac - r
admissionregistration.k8s.io v1 mutatingadmissionpolicies MutatingAdmissionPolicy C - api-extensions gv
admissionregistration.k8s.io v1 mutatingadmissionpolicybindings MutatingAdmissionPolicyBinding C - api-extensions gv
admissionregistration.k8s.io v1 mutatingwebhookconfigurations MutatingWebhookConfiguration C - api-extensions gv
admissionregistration.k8s.io v1 validatingadmissionpolicies ValidatingAdmissionPolicy C - api-extensions sgv
admissionregistration.k8s.io v1 validatingadmissionpolicybindings ValidatingAdmissionPolicyBinding C - api-extensions gv
admissionregistration.k8s.io v1 validatingwebhookconfigurations ValidatingWebhookConfiguration C - api-extensions gv
apiextensions.k8s.io v1 customresourcedefinitions CustomResourceDefinition C crd,crds api-extensions sgv
scheduling.k8s.io v1 priorityclasses PriorityClass C pc - g
coordination.k8s.io v1 leases Lease N - - vp
node.k8s.io v1 runtimeclasses RuntimeClass C - - vp
discovery.k8s.io v1 endpointslices EndpointSlice N - - g
resource.k8s.io v1 deviceclasses DeviceClass C - - gr
resource.k8s.io v1 devicetaintrules DeviceTaintRule C - - sg
resource.k8s.io v1 resourceclaims ResourceClaim N - - sr
resource.k8s.io v1 resourceclaimtemplates ResourceClaimTemplate N - - r
resource.k8s.io v1 resourceslices ResourceSlice C - - gr
flowcontrol.apiserver.k8s.io v1 flowschemas FlowSchema C - - sg
flowcontrol.apiserver.k8s.io v1 prioritylevelconfigurations PriorityLevelConfiguration C - - sg
storagemigration.k8s.io v1 storageversionmigrations StorageVersionMigration C - - sv
`

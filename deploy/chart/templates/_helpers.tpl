{{- define "starling.labels" -}}
app.kubernetes.io/name: starling
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "starling.image" -}}
{{ .Values.image.repository }}{{ with .Values.image.digest }}@{{ . }}{{ else }}:{{ .Values.image.tag }}{{ end }}
{{- end }}

{{- /* The class of the pods' priority: yours, that of the chart, or none. */}}
{{- define "starling.priority" -}}
{{- if .Values.priorityClassName -}}
{{ .Values.priorityClassName }}
{{- else if .Values.priorityClass.create -}}
{{ printf "%s.%s" .Release.Namespace .Release.Name }}
{{- end }}
{{- end }}

{{- /* The folder of the module tree. */}}
{{- define "starling.modules" -}}
{{- if eq .Values.modules.from "git" -}}
{{ clean (printf "/git/tree/%s" .Values.modules.git.path) }}
{{- else if and (eq .Values.modules.from "image") .Values.modules.image.mount -}}
{{ clean (printf "/modules/%s" .Values.modules.image.path) }}
{{- else if eq .Values.modules.from "image" -}}
{{ .Values.modules.image.path }}
{{- else -}}
/modules
{{- end }}
{{- end }}

{{- /* The rights of the modules, and for Module objects: cluster is a list of rules, namespaces
has one for each namespace, make names those that the chart makes. */}}
{{- define "starling.rights" -}}
{{- $cluster := .Values.rbac.cluster }}
{{- $entries := .Values.rbac.namespaces }}
{{- if eq .Values.modules.from "quickstart" }}
{{- $quickstart := .Files.Get "files/quickstart.yaml" | fromYaml }}
{{- $cluster = concat $quickstart.rbac.cluster $cluster }}
{{- $entries = concat $quickstart.rbac.namespaces $entries }}
{{- end }}
{{- if .Values.moduleObjects }}
{{- $objects := include "starling.moduleObjects" . | fromYaml }}
{{- $cluster = concat $objects.cluster $cluster }}
{{- $entries = concat $objects.namespaces $entries }}
{{- end }}
{{- $namespaces := dict }}
{{- $make := list }}
{{- range $entries }}
{{- $_ := set $namespaces .name (concat (get $namespaces .name | default list) .rules | uniq) }}
{{- if .create }}
{{- $make = append $make .name }}
{{- end }}
{{- end }}
{{- dict "cluster" (uniq $cluster) "namespaces" $namespaces "make" (uniq $make) | toYaml }}
{{- end }}

{{- /* Their Events are in the namespace default, as those of all objects without one. */}}
{{- define "starling.moduleObjects" -}}
cluster:
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  resourceNames: [modules.starling.dev]
  verbs: [get, create, patch]
- apiGroups: [starling.dev]
  resources: [modules]
  verbs: [list, watch, create, patch, delete]
- apiGroups: [starling.dev]
  resources: [modules/status]
  verbs: [patch]
namespaces:
- name: default
  rules:
  - apiGroups: [""]
    resources: [events]
    verbs: [get, create, patch]
{{- end }}

{{- define "starling.binding" -}}
subjects:
- kind: ServiceAccount
  name: {{ .Release.Name | quote }}
  namespace: {{ .Release.Namespace | quote }}
{{- end }}

{{- /* One of the two containers that git-sync is: the first one ends with the first commit. It is
given the values of git, and the flag in which the two differ. */}}
{{- define "starling.gitSync" -}}
{{- with .git -}}
image: {{ .image | quote }}
args:
- {{ printf "--repo=%s" (required "modules.git.repository is missing: the address of the repository that git-sync follows" .repository) | quote }}
- {{ printf "--ref=%s" .ref | quote }}
- --root=/git
- --link=tree
- {{ $.flag }}
- {{ printf "--period=%s" .period | quote }}
{{- range .args }}
- {{ . | quote }}
{{- end }}
env:
# It keeps its configuration of git there, and that of ssh.
- name: HOME
  value: /tmp
resources: {{- toYaml .resources | nindent 2 }}
securityContext:
  # A user whom its image knows, for ssh.
  runAsUser: 65533
  runAsGroup: 65533
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop:
    - ALL
volumeMounts:
- name: modules
  mountPath: /git
- name: git-tmp
  mountPath: /tmp
{{- if .secret }}
- name: git-secret
  mountPath: /etc/git-secret
  readOnly: true
{{- end }}
{{- end }}
{{- end }}

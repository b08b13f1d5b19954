{{- define "common.merge" -}}
{{- $over := fromYaml (include (index . 0) (index . 1)) | default (dict) -}}
{{- $base := fromYaml (include (index . 2) (index . 1)) | default (dict) -}}
{{- toYaml (mustMergeOverwrite $base $over) -}}
{{- end -}}

{{- define "common.deployment" -}}
{{- include "common.merge" (list .override . "common.deployment.base") -}}
{{- end -}}

{{- define "common.deployment.base" -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .root.Release.Name }}-{{ .name }}
  labels: {{- include "common.labels" . | nindent 4 }}
spec:
  replicas: {{ .workload.replicas }}
  selector: {matchLabels: {{ include "common.labels" . | fromYaml | toJson }}}
  template:
    metadata:
      labels: {{- include "common.labels" . | nindent 8 }}
    spec:
      containers:
      - name: {{ .name }}
        image: {{ .workload.image | default "registry.k8s.io/pause:3.10" }}
        {{- with .workload.port }}
        ports: [{name: http, containerPort: {{ . }}}]
        {{- end }}
        env:
        {{- range $key, $value := .workload.env }}
        - {name: {{ $key }}, value: {{ tpl $value $.root | quote }}}
        {{- end }}
{{- end -}}

{{- define "common.labels" -}}
app: {{ .root.Chart.Name }}
part: {{ .name }}
{{- end -}}

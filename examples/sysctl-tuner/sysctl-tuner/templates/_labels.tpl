{{- define "selector" -}}
app.kubernetes.io/name: sysctl-tuner
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "labels" -}}
{{ include "selector" . }}
app.kubernetes.io/version: {{ .Chart.Version | quote }}
app.kubernetes.io/component: node-agent
{{- end }}

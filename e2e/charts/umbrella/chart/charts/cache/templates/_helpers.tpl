{{- define "cache.address" -}}
{{ .Release.Name }}-{{ .Chart.Name }}.{{ .Values.global.domain }}
{{- end -}}

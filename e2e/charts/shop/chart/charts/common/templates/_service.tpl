{{- define "common.service" -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ .root.Release.Name }}-{{ .name }}
  labels: {{- include "common.labels" . | nindent 4 }}
spec:
  ports: [{name: http, port: 80, targetPort: http}]
  selector: {{- include "common.labels" . | nindent 4 }}
{{- end -}}

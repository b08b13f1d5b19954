{{- define "shop.override" -}}
metadata:
  annotations: {shop.example/tier: {{ .name }}}
spec:
  strategy: {type: Recreate}
{{- end -}}

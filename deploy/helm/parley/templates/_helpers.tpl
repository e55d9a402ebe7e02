{{- define "parley.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "parley.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "parley.labels" -}}
{{ include "parley.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- /* The settings, with the host names by which clients in the cluster and Prometheus reach a gateway. */ -}}
{{- define "parley.config" -}}
{{- $name := include "parley.name" . -}}
{{- $local := printf "%s.%s" $name .Release.Namespace -}}
{{- $svc := printf "%s.svc" $local -}}
{{- $hosts := list $name $local $svc (printf "%s.cluster.local" $svc) "${POD_IP}" -}}
{{- $allowed := concat $hosts (dig "gateway" "allowedHosts" list .Values.config) -}}
{{- mergeOverwrite (deepCopy .Values.config) (dict "gateway" (dict "allowedHosts" $allowed)) | toPrettyJson -}}
{{- end -}}

{{- define "parley.check" -}}
{{- if gt (int .Values.replicas) 1 -}}
{{- if not .Values.postgresql.url -}}
{{- fail "replicas: several gateways need a PostgreSQL database. Set postgresql.url, or replicas to 1." -}}
{{- end -}}
{{- if not .Values.existingSecret -}}
{{- fail "replicas: several gateways need the same token. Set existingSecret to a Secret with PARLEY_TOKEN." -}}
{{- end -}}
{{- end -}}
{{- if and .Values.serviceMonitor.enabled (not .Values.existingSecret) -}}
{{- fail "serviceMonitor: /metrics needs a token. Set existingSecret to a Secret with PARLEY_TOKEN." -}}
{{- end -}}
{{- end -}}

{{- define "nagare.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "nagare.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "nagare.labels" -}}
{{ include "nagare.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "nagare.isLoopback" -}}
{{- if or (hasPrefix "127." .Values.admin.address) (eq .Values.admin.address "localhost") (eq .Values.admin.address "[::1]") -}}
true
{{- end -}}
{{- end -}}

{{- /* Combinations of values that the node or the cluster would refuse later, or that are not safe. */ -}}
{{- define "nagare.check" -}}
{{- if and (gt (int .Values.replicas) 1) (not .Values.cluster.enabled) -}}
{{- fail "replicas is more than 1 without cluster.enabled: set cluster.enabled, or 1 replica, because a channel is served by one node otherwise." -}}
{{- end -}}
{{- if .Values.cluster.enabled -}}
{{- if not (or .Values.cluster.store .Values.cluster.storeSecret.name) -}}
{{- fail "cluster.enabled needs the URL of Redis or Valkey: set cluster.store or cluster.storeSecret.name." -}}
{{- end -}}
{{- if not .Values.cluster.secret.name -}}
{{- fail "cluster.enabled needs a Secret for the nodes' authentication: set cluster.secret.name." -}}
{{- end -}}
{{- end -}}
{{- if and (not (include "nagare.isLoopback" .)) (not .Values.auth.adminTokenSecret.name) -}}
{{- fail "admin.address is not loopback: set auth.adminTokenSecret.name, because anyone could end connections otherwise." -}}
{{- end -}}
{{- if and .Values.podMonitor.enabled (include "nagare.isLoopback" .) -}}
{{- fail "podMonitor.enabled needs an admin.address that Prometheus reaches, such as 0.0.0.0." -}}
{{- end -}}
{{- end -}}

{{- /* The configuration file: what the chart sets, and config over it. */ -}}
{{- define "nagare.config" -}}
{{- $settings := dict
  "http" (printf "0.0.0.0:%d" (int .Values.ports.http))
  "media" (list (printf "0.0.0.0:%d" (int .Values.ports.media)))
  "admin" (printf "%s:%d" .Values.admin.address (int .Values.ports.admin))
  "loops" (int .Values.loops)
  "drain-deadline" (int .Values.drainDeadline)
  "grace" (int .Values.grace) -}}
{{- if and .Values.announce (ne (toString .Values.announce) "host") -}}
{{- $_ := set $settings "announce" .Values.announce -}}
{{- end -}}
{{- if .Values.tls.secretName -}}
{{- $_ := set $settings "tls-cert" "/etc/nagare/tls/tls.crt" -}}
{{- $_ := set $settings "tls-key" "/etc/nagare/tls/tls.key" -}}
{{- end -}}
{{- if .Values.auth.adminTokenSecret.name -}}
{{- $_ := set $settings "admin-token" "@/etc/nagare/admin/token" -}}
{{- end -}}
{{- toYaml (mergeOverwrite $settings .Values.config) -}}
{{- end -}}

{{- /* The kubelet is on the pod's network, so it reaches loopback. */ -}}
{{- define "nagare.probe" -}}
port: admin
{{- if hasKey .Values.config "admin-tls-cert" }}
scheme: HTTPS
{{- end }}
{{- if include "nagare.isLoopback" . }}
host: {{ trimAll "[]" .Values.admin.address | quote }}
{{- end }}
{{- end -}}

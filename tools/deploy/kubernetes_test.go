package deploy

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

const dir = "../../deploy/kubernetes"

func read[T any](t *testing.T, name string) *T {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	to := new(T)
	if err := yaml.UnmarshalStrict(text, to); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return to
}

// Objects have only fields that Kubernetes knows, and the objects that they reference exist.
func TestObjectsFitEachOther(t *testing.T) {
	d, s, b := read[apps.Deployment](t, "deployment.yaml"), read[core.Service](t, "service.yaml"), read[policy.PodDisruptionBudget](t, "disruption.yaml")
	k := read[struct {
		APIVersion, Kind   string
		Resources          []string
		ConfigMapGenerator []struct {
			Name  string
			Files []string
		}
		Images []struct{ Name, NewName, NewTag string }
	}](t, "kustomization.yaml")
	for i, kind := range []string{d.APIVersion + " " + d.Kind, s.APIVersion + " " + s.Kind, b.APIVersion + " " + b.Kind, k.APIVersion + " " + k.Kind} {
		if want := []string{"apps/v1 Deployment", "v1 Service", "policy/v1 PodDisruptionBudget", "kustomize.config.k8s.io/v1beta1 Kustomization"}[i]; kind != want {
			t.Errorf("%s, want %s", kind, want)
		}
	}
	entries, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if name := filepath.Base(e); name != "kustomization.yaml" && !slices.Contains(k.Resources, name) && !slices.Contains(k.ConfigMapGenerator[0].Files, name) {
			t.Errorf("%s is applied by nobody", name)
		}
	}
	labels := d.Spec.Template.Labels
	for of, selector := range map[string]map[string]string{"deployment": d.Spec.Selector.MatchLabels, "service": s.Spec.Selector, "budget": b.Spec.Selector.MatchLabels} {
		if len(selector) == 0 {
			t.Errorf("the %s selects everything", of)
		}
		for name, value := range selector {
			if labels[name] != value {
				t.Errorf("the %s selects %s=%s, and pods have %v", of, name, value, labels)
			}
		}
	}
	c := d.Spec.Template.Spec.Containers[0]
	if c.Image != k.Images[0].Name {
		t.Errorf("kustomize names the image %s, the pod %s", k.Images[0].Name, c.Image)
	}
	ports := make(map[string]int32)
	for _, p := range c.Ports {
		ports[p.Name] = p.ContainerPort
	}
	for _, p := range s.Spec.Ports {
		if ports[p.TargetPort.StrVal] == 0 {
			t.Errorf("the service leads to the port %s", p.TargetPort.StrVal)
		}
	}
	probes(t, &c, ports)
	mounts(t, d, k.ConfigMapGenerator[0].Name)
}

// probes checks that Kubernetes uses weir's probes: /livez for restarts, and /readyz for readiness.
func probes(t *testing.T, c *core.Container, ports map[string]int32) {
	for path, all := range map[string][]*core.Probe{"/livez": {c.StartupProbe, c.LivenessProbe}, "/readyz": {c.ReadinessProbe}} {
		for _, p := range all {
			if p == nil || p.HTTPGet == nil || p.HTTPGet.Path != path || ports[p.HTTPGet.Port.StrVal] != 8081 {
				t.Errorf("a probe is %v, want %s of the admin listener", p, path)
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "weir.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`listen: ":8080"`, `admin: ":8081"`, "admin_open: true"} {
		if !strings.Contains(string(text), want+" ") && !strings.Contains(string(text), want+"\n") {
			t.Errorf("weir.yaml has no %s, and nobody reaches it", want)
		}
	}
}

// mounts checks that a pod can read its files, writes no other files, and is not root.
func mounts(t *testing.T, d *apps.Deployment, config string) {
	spec := d.Spec.Template.Spec
	c := spec.Containers[0]
	volumes := make(map[string]core.Volume)
	for _, v := range spec.Volumes {
		volumes[v.Name] = v
	}
	at := make(map[string]string)
	for _, m := range c.VolumeMounts {
		if _, there := volumes[m.Name]; !there {
			t.Errorf("there is no volume %s", m.Name)
		}
		at[m.MountPath] = m.Name
	}
	if v := volumes[at["/etc/weir"]]; v.ConfigMap == nil || v.ConfigMap.Name != config {
		t.Errorf("/etc/weir is %+v", v)
	}
	if !slices.Contains(c.Args, "/etc/weir/weir.yaml") || c.Args[0] != "serve" || c.Command != nil {
		t.Errorf("it runs %v %v", c.Command, c.Args)
	}
	s, p := c.SecurityContext, spec.SecurityContext
	if s == nil || p == nil || !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation || !slices.Equal(s.Capabilities.Drop, []core.Capability{"ALL"}) || !*p.RunAsNonRoot || *p.RunAsUser != 65532 || p.SeccompProfile.Type != "RuntimeDefault" {
		t.Errorf("a container may %+v, a pod %+v", s, p)
	}
	if *spec.AutomountServiceAccountToken {
		t.Error("a pod has a token of the cluster")
	}
}

// Renders the templates of a Helm chart as `helm template` does, with the same template engine and functions: chart FOLDER
// RELEASE < VALUES, where VALUES is YAML that overrides values.yaml. Prints {"FILE": "TEXT"} as JSON.
//
// A value that no file declares is an error, which Helm leaves empty.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"gopkg.in/yaml.v3"
)

func main() {
	if len(os.Args) != 3 {
		fail(errors.New("usage: chart FOLDER RELEASE < VALUES"))
	}
	files, err := render(os.Args[1], os.Args[2], os.Stdin)
	if err != nil {
		fail(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(files); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func render(folder, release string, overrides io.Reader) (map[string]string, error) {
	values, err := readYAML(filepath.Join(folder, "values.yaml"))
	if err != nil {
		return nil, err
	}
	chart, err := readYAML(filepath.Join(folder, "Chart.yaml"))
	if err != nil {
		return nil, err
	}
	var given map[string]interface{}
	if err := yaml.NewDecoder(overrides).Decode(&given); err != nil && err != io.EOF {
		return nil, err
	}
	override(values, given)

	paths, err := filepath.Glob(filepath.Join(folder, "templates", "*"))
	if err != nil {
		return nil, err
	}
	all := template.New("chart").Option("missingkey=error")
	all.Funcs(functions(all))
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if _, err := all.New(filepath.Base(path)).Parse(string(text)); err != nil {
			return nil, err
		}
	}
	data := map[string]interface{}{
		"Values":  values,
		"Chart":   capitalised(chart),
		"Release": map[string]interface{}{"Name": release, "Namespace": "media", "Service": "Helm"},
		"Files":   files(folder),
	}
	rendered := map[string]string{}
	for _, path := range paths {
		name := filepath.Base(path)
		// Helm renders files whose names begin with an underscore only where others include them.
		if strings.HasPrefix(name, "_") {
			continue
		}
		var text bytes.Buffer
		if err := all.ExecuteTemplate(&text, name, data); err != nil {
			return nil, err
		}
		rendered[name] = text.String()
	}
	return rendered, nil
}

// The chart's folder, for files that templates include.
type files string

// Get returns the text of a file, which is empty when there is none, as in Helm.
func (folder files) Get(name string) string {
	text, err := os.ReadFile(filepath.Join(string(folder), name))
	if err != nil {
		return ""
	}
	return string(text)
}

// The functions that Helm adds to those of Sprig and of the template engine, as far as the chart uses them.
func functions(all *template.Template) template.FuncMap {
	functions := sprig.TxtFuncMap()
	functions["include"] = func(name string, data interface{}) (string, error) {
		var text strings.Builder
		err := all.ExecuteTemplate(&text, name, data)
		return text.String(), err
	}
	functions["toYaml"] = func(value interface{}) (string, error) {
		var text bytes.Buffer
		encoder := yaml.NewEncoder(&text)
		encoder.SetIndent(2)
		err := encoder.Encode(value)
		return strings.TrimSuffix(text.String(), "\n"), err
	}
	functions["fromYaml"] = func(text string) (map[string]interface{}, error) {
		var value map[string]interface{}
		err := yaml.Unmarshal([]byte(text), &value)
		return value, err
	}
	return functions
}

func readYAML(path string) (map[string]interface{}, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	values := map[string]interface{}{}
	return values, yaml.Unmarshal(text, &values)
}

// Puts `given` over `values`: maps are merged, all else is replaced.
func override(values, given map[string]interface{}) {
	for key, value := range given {
		inner, isMap := value.(map[string]interface{})
		old, wasMap := values[key].(map[string]interface{})
		if isMap && wasMap {
			override(old, inner)
		} else {
			values[key] = value
		}
	}
}

// The fields of Chart.yaml under the names that templates use: appVersion is AppVersion.
func capitalised(chart map[string]interface{}) map[string]interface{} {
	fields := map[string]interface{}{}
	for name, value := range chart {
		fields[strings.ToUpper(name[:1])+name[1:]] = value
	}
	return fields
}

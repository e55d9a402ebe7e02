// Renders a chart as `helm template` does, with the libraries that Helm is made of: Go's text/template, sprig and
// sigs.k8s.io/yaml, from Debian's packages. Reads the folder of the chart from the argument, and values, as JSON,
// from standard input. Prints a JSON object from the names of the templates to their texts.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"sigs.k8s.io/yaml"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func readYaml(path string, into interface{}) {
	text, err := os.ReadFile(path)
	must(err)
	must(yaml.Unmarshal(text, into))
}

// Lays values over others, as Helm does: maps are merged, a null removes a key.
func lay(over, under map[string]interface{}) map[string]interface{} {
	for key, value := range over {
		inner, isMap := value.(map[string]interface{})
		below, hasMap := under[key].(map[string]interface{})
		if value == nil {
			delete(under, key)
		} else if isMap && hasMap {
			under[key] = lay(inner, below)
		} else {
			under[key] = value
		}
	}
	return under
}

func main() {
	folder := os.Args[1]
	var chart struct{ Name, Version, AppVersion string }
	readYaml(filepath.Join(folder, "Chart.yaml"), &chart)
	values, given := map[string]interface{}{}, map[string]interface{}{}
	readYaml(filepath.Join(folder, "values.yaml"), &values)
	must(json.NewDecoder(os.Stdin).Decode(&given))

	root := template.New("").Option("missingkey=error")
	functions := sprig.TxtFuncMap()
	delete(functions, "env")
	delete(functions, "expandenv")
	functions["toYaml"] = func(value interface{}) (string, error) {
		text, err := yaml.Marshal(value)
		return strings.TrimSuffix(string(text), "\n"), err
	}
	functions["include"] = func(name string, data interface{}) (string, error) {
		var text bytes.Buffer
		err := root.ExecuteTemplate(&text, name, data)
		return text.String(), err
	}
	root.Funcs(functions)
	files, err := filepath.Glob(filepath.Join(folder, "templates", "*"))
	must(err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(err)
		_, err = root.New(filepath.Base(file)).Parse(string(text))
		must(err)
	}
	release := map[string]interface{}{"Name": "parley", "Namespace": "agents", "Service": "Helm"}
	data := map[string]interface{}{"Chart": chart, "Release": release, "Values": lay(given, values)}
	rendered := map[string]string{}
	for _, file := range files {
		name := filepath.Base(file)
		if strings.HasPrefix(name, "_") {
			continue
		}
		var text bytes.Buffer
		must(root.ExecuteTemplate(&text, name, data))
		rendered[name] = text.String()
	}
	must(json.NewEncoder(os.Stdout).Encode(rendered))
}

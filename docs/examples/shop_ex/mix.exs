defmodule Shop.MixProject do
  use Mix.Project

  def project do
    [
      app: :shop,
      version: "0.1.0",
      deps: deps(),
      releases: [shop: []]
    ]
  end

  def application, do: [mod: {Shop, []}, extra_applications: [:logger]]

  # This example is built against the tree it is in. A project of your own has instead
  #   {:sderl, git: "URL", branch: "main", sparse: "apps/sderl", manager: :rebar3}
  defp deps, do: [{:sderl, path: "../../../apps/sderl", manager: :rebar3}]
end

import Config

config :sderl,
  s_groups: [{:shop, :normal, [:"shop1@127.0.0.1", :"shop2@127.0.0.1"]}],
  cluster: "production",
  await: {:all, 30_000}

# The node of `mix test` is alone in the group, also when it has no name.
if config_env() == :test do
  config :sderl, s_groups: [{:shop, :normal, [node()]}]
end

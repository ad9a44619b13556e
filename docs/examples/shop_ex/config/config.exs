import Config

config :sderl,
  s_groups: [{:shop, :normal, [:"shop1@127.0.0.1", :"shop2@127.0.0.1"]}],
  cluster: "production",
  await: {:all, 30_000}
